// Package identitykey reads an installation's identity key, from its file, for every program alike.
package identitykey

import (
	"errors"
	"fmt"
	"io"
	"os"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// Read reads an identity key file. Its errors name the setting and what to do.
func Read(file string) (wirev1.Keys, error) {
	if file == "" {
		return wirev1.Keys{}, errors.New("identityKeyFile: none given; make one with `weir key FILE` and give every program the same")
	}
	f, err := os.Open(file)
	if err != nil {
		return wirev1.Keys{}, fmt.Errorf("identityKeyFile: %w; make one with `weir key FILE` and give every program the same", err)
	}
	defer f.Close()
	key, err := io.ReadAll(io.LimitReader(f, wirev1.KeySize+1))
	if err != nil {
		return wirev1.Keys{}, fmt.Errorf("identityKeyFile: read %s: %w", file, err)
	}
	keys, err := wirev1.NewKeys(key)
	if err != nil {
		return wirev1.Keys{}, fmt.Errorf("identityKeyFile: %s: %w raw bytes, as `weir key FILE` writes them", file, err)
	}
	return keys, nil
}
