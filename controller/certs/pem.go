package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// The keys of the Secret; tls.crt and tls.key as in Secrets of the type kubernetes.io/tls.
const (
	keyAuthorities  = "ca.crt"
	keyAuthorityKey = "ca.key"
	keyCertificate  = "tls.crt"
	keyKey          = "tls.key"
)

// maxAuthorities bounds what is read of a Secret: two overlap, and others are of no use.
const maxAuthorities = 16

// encode is the state as a Secret's data.
func (s state) encode() (map[string][]byte, error) {
	authorityKey, err := encodeKey(s.key)
	if err != nil {
		return nil, err
	}
	key, err := encodeKey(s.serving.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyAuthorities: encodeCerts(s.authorities...), keyAuthorityKey: authorityKey,
		keyCertificate: encodeCerts(s.serving.cert), keyKey: key,
	}, nil
}

// decode reads a Secret's data. After an error the state holds what could be read, so that an authority that is
// still trusted stays so.
func decode(data map[string][]byte) (s state, err error) {
	var errs [4]error
	s.authorities, errs[0] = decodeCerts(data[keyAuthorities])
	s.key, errs[1] = decodeKey(data[keyAuthorityKey])
	certs, err := decodeCerts(data[keyCertificate])
	if errs[2] = err; err == nil {
		s.serving.cert = certs[0]
	}
	s.serving.key, errs[3] = decodeKey(data[keyKey])
	for i, name := range []string{keyAuthorities, keyAuthorityKey, keyCertificate, keyKey} {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w", name, errs[i])
		}
	}
	return s, errors.Join(errs[:]...)
}

func encodeCerts(certs ...*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range certs {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return b.Bytes()
}

func decodeCerts(text []byte) (certs []*x509.Certificate, err error) {
	for len(certs) < maxAuthorities {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errors.New("it holds no PEM certificate")
	}
	return certs, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it holds no PEM key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it holds a %T, and the authority's keys are ECDSA", key)
	}
	return ec, nil
}

// pair is the certificate as a server has it.
func (s state) pair() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{s.serving.cert.Raw}, PrivateKey: s.serving.key, Leaf: s.serving.cert}
}
