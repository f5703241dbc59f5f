package main

import (
	"crypto/rand"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func keyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key FILE",
		Short: "Make a new identity key for an installation",
		Long: `Make a new identity key, 32 random bytes, in FILE (which must not exist yet), readable by its owner only.

Every program of an installation has the same key. Counters are named by a hash under it, so a new key begins all
counts anew, and override values of secret sources must be published again.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			fingerprint, err := makeKey(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: new identity key, fingerprint %08x\n", args[0], fingerprint)
			return nil
		},
	}
}

func makeKey(file string) (fingerprint uint32, err error) {
	key := make([]byte, wirev1.KeySize)
	if _, err := rand.Read(key); err != nil {
		return 0, fmt.Errorf("random bytes: %w", err)
	}
	keys, err := wirev1.NewKeys(key)
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("make the key file: %w; a key in use is never overwritten", err)
	}
	_, err = f.Write(key)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file)
		return 0, fmt.Errorf("write the key file: %w", err)
	}
	return keys.Fingerprint(), nil
}
