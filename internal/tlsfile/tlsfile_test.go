package tlsfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pair writes a new self-signed certificate and its key, and returns the certificate (DER).
func pair(t *testing.T, cert, key string, serial int64) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return der
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestARotatedCertificateIsTakenUp(t *testing.T) {
	f := Files{Cert: filepath.Join(t.TempDir(), "cert"), Key: filepath.Join(t.TempDir(), "key")}
	pair(t, f.Cert, f.Key, 1)
	config, err := f.Config("redis.tls")
	if err != nil {
		t.Fatal(err)
	}
	want := pair(t, f.Cert, f.Key, 2)
	got, err := config.GetClientCertificate(nil)
	if err != nil || !bytes.Equal(got.Certificate[0], want) {
		t.Errorf("not the new certificate: %v", err)
	}
}

func TestErrorsNameTheSetting(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, nil)
	for want, f := range map[string]Files{
		"redis.tls.caFile":   {CA: empty},
		"redis.tls.certFile": {Cert: empty, Key: empty},
	} {
		if _, err := f.Config("redis.tls"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s named", err, want)
		}
	}
}
