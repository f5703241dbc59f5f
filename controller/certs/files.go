package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"time"
)

// files is the source of mode Files: a directory that a Secret of the type kubernetes.io/tls is mounted at. Who
// fills the Secret also tells kube-apiserver whom to trust.
type files struct{ directory string }

// load reads the pair.
func (f files) load(_ context.Context, _ time.Time) (material, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(f.directory, keyCertificate), filepath.Join(f.directory, keyKey))
	if err != nil {
		return material{}, fmt.Errorf("read %s and %s of %s: %w", keyCertificate, keyKey, f.directory, err)
	}
	return material{pair: &pair}, nil
}
