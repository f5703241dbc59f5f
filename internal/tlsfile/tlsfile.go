// Package tlsfile makes a client's TLS configuration from PEM files, for Kafka and Redis alike.
package tlsfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Files name what a client's TLS is made of; empty ones are left out: the system's authorities, no
// client certificate, the dialled host's name.
type Files struct {
	CA, Cert, Key string
	ServerName    string
}

// Config reads the files, TLS 1.2 or newer. The client's certificate is read anew for each connection, so that
// a rotated one is taken up. Errors begin with the name of the settings, such as redis.tls.
func (f Files) Config(settings string) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("%s.caFile: %w", settings, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s.caFile: %s holds no PEM certificate", settings, f.CA)
		}
	}
	if f.Cert == "" {
		return out, nil
	}
	if _, err := tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return nil, fmt.Errorf("%s.certFile, %s.keyFile: %w", settings, settings, err)
	}
	out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		return &pair, err
	}
	return out, nil
}
