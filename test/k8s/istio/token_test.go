package istio_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"
)

// issuer signs tokens.
type issuer struct{ key *ecdsa.PrivateKey }

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{key}
}

// token is one whose sub claim is given.
func (i *issuer) token(t *testing.T, sub string) string {
	t.Helper()
	text := encode([]byte(`{"alg":"ES256","kid":"k"}`)) + "." +
		encode(fmt.Appendf(nil, `{"iss":"issuer.example","sub":%q,"exp":4000000000}`, sub))
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encode(signature)
}

// trusted is the document that has the mesh verify this issuer's tokens.
func (i *issuer) trusted(namespace string) string {
	point, err := i.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		panic(err) // not on the curve
	}
	return fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: %s}
spec:
  jwtRules:
  - issuer: issuer.example
    jwks: '{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"k","x":%q,"y":%q}]}'
---
`, namespace, encode(point[1:33]), encode(point[33:]))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
