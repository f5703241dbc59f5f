package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Lifetimes. An authority is replaced with a third of its life left, four months, and a certificate with a third
// of its own, one month. An authority outlives what it signed, as it signs nothing in its last third.
const (
	authorityLife   = 365 * 24 * time.Hour
	certificateLife = 90 * 24 * time.Hour
	// backdate allows for a kube-apiserver whose clock is behind.
	backdate = time.Hour
)

const authorityName = "weir-webhook authority"

// signed is a certificate and its key.
type signed struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// state is what all replicas share. The zero value holds nothing.
type state struct {
	// authorities are trusted, the newest first, each until its end.
	authorities []*x509.Certificate
	// key is the newest authority's; nil: it signs no more.
	key     *ecdsa.PrivateKey
	serving signed
}

// Why a state was renewed, for people.
const (
	whyNew         = "there was no usable authority"
	whyAuthority   = "the authority had a third of its life left"
	whyCertificate = "the certificate had a third of its life left"
	whyNames       = "the certificate was for other names, or of no authority here"
)

// renewed is the state as it has to be at now for a service of these names, and why it differs; "" where it
// does not.
//
// kube-apiserver learns of a new authority a little after it was made. So with a new authority the certificate is
// signed by the old one once more, and the new one signs the next: two months later.
func (s state) renewed(now time.Time, names []string) (next state, why string, err error) {
	s.authorities = slices.DeleteFunc(slices.Clone(s.authorities), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	if !s.signs(now) {
		return s.founded(now, names)
	}
	switch {
	case dueAt(s.authorities[0], now):
		why = whyAuthority
	case !s.serves(names, now):
		why = whyNames
	case dueAt(s.serving.cert, now):
		why = whyCertificate
	default:
		return s, "", nil
	}
	if s.serving, err = s.issue(now, names); err != nil {
		return state{}, "", err
	}
	if why == whyAuthority {
		fresh, err := newAuthority(now)
		if err != nil {
			return state{}, "", err
		}
		s.authorities, s.key = slices.Insert(s.authorities, 0, fresh.cert), fresh.key
	}
	return s, why, nil
}

// founded is a state with a new authority that signs at once. Older ones are trusted on, for replicas that have
// not read the new state yet.
func (s state) founded(now time.Time, names []string) (next state, why string, err error) {
	a, err := newAuthority(now)
	if err != nil {
		return state{}, "", err
	}
	s.authorities = slices.Insert(s.authorities[:min(len(s.authorities), maxAuthorities-1)], 0, a.cert)
	s.key = a.key
	if s.serving, err = s.issue(now, names); err != nil {
		return state{}, "", err
	}
	return s, whyNew, nil
}

// signs reports whether the newest authority can sign a certificate that lives its time.
func (s state) signs(now time.Time) bool {
	if len(s.authorities) == 0 || s.key == nil {
		return false
	}
	a := s.authorities[0]
	return a.IsCA && s.key.PublicKey.Equal(a.PublicKey) && !now.Before(a.NotBefore) && now.Add(certificateLife).Before(a.NotAfter)
}

// serves reports whether the certificate convinces whoever trusts the authorities of each name.
func (s state) serves(names []string, now time.Time) bool {
	if s.serving.cert == nil || s.serving.key == nil || !s.serving.key.PublicKey.Equal(s.serving.cert.PublicKey) {
		return false
	}
	roots := x509.NewCertPool()
	for _, a := range s.authorities {
		roots.AddCert(a)
	}
	for _, name := range names {
		if _, err := s.serving.cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

// dueAt reports whether at most a third of c's life is left.
func dueAt(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3))
}

func newAuthority(now time.Time) (signed, error) {
	return create(&x509.Certificate{
		Subject:               pkix.Name{CommonName: authorityName},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, signed{})
}

// issue signs a certificate for the names.
func (s state) issue(now time.Time, names []string) (signed, error) {
	return create(&x509.Certificate{
		Subject:               pkix.Name{CommonName: names[0]},
		DNSNames:              names,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(certificateLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, signed{s.authorities[0], s.key})
}

// create makes a key and a certificate of it, signed by by or, where that is empty, by itself.
func create(template *x509.Certificate, by signed) (signed, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signed{}, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return signed{}, fmt.Errorf("make a serial number: %w", err)
	}
	if by.cert == nil {
		by = signed{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return signed{}, fmt.Errorf("sign a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return signed{cert, key}, err
}
