package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// readInput reads a file, or standard input for "-": at most so many bytes and one more, by which its reader sees that it is too long.
func readInput(cmd *cobra.Command, file string, most int64) ([]byte, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return data, nil
}
