package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/identitykey"
	"github.com/weirproxy/weir/internal/policy"
)

func hashCommand() *cobra.Command {
	var keyFile, header string
	cmd := &cobra.Command{
		Use:   "hash --key FILE --header NAME [VALUE]",
		Short: "Print the keyed hash of a secret header value, for an override's valueHash",
		Long: `Print the keyed hash under which a value of a secret client source is published and counted.

Without VALUE it is read from the first line of standard input, which keeps it out of the shell's history.`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "`FILE` of the installation's identity key")
	cmd.Flags().StringVar(&header, "header", "", "`NAME` of the header, for example x-api-key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if keyFile == "" || header == "" {
			return cli.Usage(errors.New("give both --key and --header"))
		}
		keys, err := identitykey.Read(keyFile)
		if err != nil {
			return err
		}
		value, err := secretValue(cmd.InOrStdin(), args)
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), policy.HashValue(keys, policy.SourceHeader, strings.ToLower(header), value))
		return nil
	}
	return cmd
}

// maxSecret bounds a value that is read, bytes: no proxy takes longer headers.
const maxSecret = 64 << 10

func secretValue(in io.Reader, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxSecret)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the value: %w", err)
	}
	value := strings.TrimRight(line, "\r\n")
	if value == "" {
		return "", cli.Usage(errors.New("no value: give it as an argument or on standard input"))
	}
	return value, nil
}
