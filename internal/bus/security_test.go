package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirproxy/weir/internal/embedded"
)

const rootPassword = "p4ss of root"

// secured starts a broker that wants SASL, and dials it as root.
func secured(t *testing.T, opts ...kfake.Opt) (*embedded.Kafka, *Client) {
	t.Helper()
	k, err := embedded.StartKafka("", append(opts, kfake.EnableSASL(), kfake.Superuser(Plain, "root", rootPassword),
		kfake.Superuser(ScramSHA256, "root", rootPassword), kfake.Superuser(ScramSHA512, "root", rootPassword))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k, dial(t, saslConfig(t, k, Plain, "root", rootPassword))
}

func saslConfig(t *testing.T, k *embedded.Kafka, mechanism, user, password string) Config {
	t.Helper()
	return Config{Brokers: []string{k.Addr()}, SASL: SASL{Mechanism: mechanism, Username: user,
		PasswordFile: file(t, "password", password+"\n")}}
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSASLMechanisms(t *testing.T) {
	for _, m := range []string{Plain, ScramSHA256, ScramSHA512} {
		t.Run(m, func(t *testing.T) {
			k, _ := secured(t)
			c := dial(t, saslConfig(t, k, m, "root", rootPassword))
			top := topic(t, c, 1)
			mustPut(t, c, top, 0, "a")
			r, got := taped(c, top, map[int32]From{0: {}})
			run(t, r.Run)
			eventually(t, "a is read", func() bool { return got.has("v:a") })
		})
	}
}

// A wrong password: Dial says so, keeps trying until it is told to stop, and shows no secret.
func TestDialWithAWrongPasswordSaysSoWithoutIt(t *testing.T) {
	k, _ := secured(t)
	for _, m := range []string{Plain, ScramSHA256} {
		const secret = "not the right one"
		cfg := saslConfig(t, k, m, "root", secret)
		ctx, cancel := context.WithCancel(t.Context())
		var reasons []string
		cfg.State = func(r string) { reasons = append(reasons, r); cancel() }
		logs, seen := observer.New(zap.DebugLevel)
		_, err := Dial(ctx, cfg, zap.New(logs))
		if err == nil || len(reasons) != 1 {
			t.Fatalf("%s: err %v, reasons %q", m, err, reasons)
		}
		all := fmt.Sprint(err, reasons, seen.All())
		if strings.Contains(all, secret) {
			t.Errorf("%s: the password is shown: %s", m, all)
		}
		if !strings.Contains(strings.ToLower(all), "sasl") {
			t.Errorf("%s: nobody can tell what is wrong: %s", m, all)
		}
	}
}

// A password that is wrong when a program starts is put right in its file: the program goes on without a restart.
func TestAWrongPasswordMendedWhileDialWaits(t *testing.T) {
	k, _ := secured(t)
	for _, wrong := range []string{"not the right one", "\n"} {
		cfg := saslConfig(t, k, ScramSHA256, "root", "wrong")
		waiting := make(chan string, 10)
		cfg.State = func(r string) { waiting <- r }
		cfg.BackoffMin, cfg.BackoffMax = time.Millisecond, 5*time.Millisecond
		done := make(chan error, 1)
		go func() {
			_, err := Dial(t.Context(), cfg, zap.NewNop())
			done <- err
		}()
		if r := <-waiting; r == "" {
			t.Fatal("let in with a wrong password: the test proves nothing")
		}
		rewrite(t, cfg.SASL.PasswordFile, wrong) // an empty one is but another that is wrong
		rewrite(t, cfg.SASL.PasswordFile, rootPassword+"\n")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if r := <-waiting; r != "" {
			t.Errorf("it still waits for %q", r)
		}
	}
}

// What is rotated in a mounted Secret holds at the next connection, whoever makes it.
func TestARotatedPasswordHoldsAtTheNextConnection(t *testing.T) {
	k, _ := secured(t)
	cfg := saslConfig(t, k, Plain, "root", rootPassword)
	c := dial(t, cfg)
	asks := map[string]func() error{
		"a question": func() error { return c.Ping(t.Context()) },
		"the administrator": func() error {
			return c.admin(t.Context(), func(a sarama.ClusterAdmin) error { _, err := a.ListTopics(); return err })
		},
	}
	for what, ask := range asks {
		for _, step := range []struct{ content, says string }{
			{"old\n", "kafka"}, {rootPassword, ""}, {"\r\n", "password is empty"}, {strings.Repeat("x", maxPassword+1), "is larger than"}, {rootPassword + "\n", ""},
		} {
			rewrite(t, cfg.SASL.PasswordFile, step.content)
			err := ask()
			if (err == nil) != (step.says == "") || err != nil && !strings.Contains(strings.ToLower(err.Error()), step.says) {
				t.Errorf("%s: got %v, want %q", what, err, step.says)
			}
		}
	}
}

// A pipe, as a shell gives one for <(pass show kafka), can be read once: what it gave is kept.
func TestAPasswordFromAPipeIsReadOnce(t *testing.T) {
	k, _ := secured(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	fmt.Fprintln(w, rootPassword)
	_ = w.Close()
	cfg := saslConfig(t, k, Plain, "root", "")
	cfg.SASL.PasswordFile = fmt.Sprintf("/proc/self/fd/%d", r.Fd())
	if err := dial(t, cfg).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func rewrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTLSWithClientCertificates(t *testing.T) {
	ca := newAuthority(t)
	server := ca.issue(t, "localhost")
	pair, err := tls.LoadX509KeyPair(server.cert, server.key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := embedded.StartKafka("", kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair},
		ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	mine := ca.issue(t, "weir")
	good := TLS{Enabled: true, CAFile: ca.file, CertFile: mine.cert, KeyFile: mine.key}
	c := dial(t, Config{Brokers: []string{k.Addr()}, TLS: good})
	top := topic(t, c, 1)
	mustPut(t, c, top, 0, "a")
	r, got := taped(c, top, map[int32]From{0: {}})
	run(t, r.Run)
	eventually(t, "a is read", func() bool { return got.has("v:a") })

	other := newAuthority(t)
	mineCA := read(t, ca.file)
	rewrite(t, ca.file, read(t, other.file))
	if err := c.Ping(t.Context()); err == nil {
		t.Error("another authority in the file, and the broker is still believed")
	}
	rewrite(t, ca.file, mineCA)
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("the authority is back in the file: %v", err)
	}
	for what, bad := range map[string]TLS{
		"unknown authority":     {Enabled: true, CAFile: other.file, CertFile: mine.cert, KeyFile: mine.key},
		"wrong name":            {Enabled: true, CAFile: ca.file, CertFile: mine.cert, KeyFile: mine.key, ServerName: "elsewhere"},
		"no client certificate": {Enabled: true, CAFile: ca.file},
		"no TLS":                {},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Dial(ctx, Config{Brokers: []string{k.Addr()}, TLS: bad, RequestTimeout: 500 * time.Millisecond,
			State: func(string) { cancel() }}, zap.NewNop())
		if err == nil {
			t.Errorf("%s: it was let in", what)
		}
		cancel()
	}
}

type authority struct {
	file string
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

type issued struct{ cert, key string }

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool(), key: newKey(t)}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der := sign(t, a.cert, a.cert, a.key, a.key)
	a.file = file(t, "ca.pem", pemOf("CERTIFICATE", der))
	a.pool.AppendCertsFromPEM([]byte(pemOf("CERTIFICATE", der)))
	return a
}

func (a *authority) issue(t *testing.T, host string) issued {
	t.Helper()
	key := newKey(t)
	der := sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a.cert, key, a.key)
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{cert: file(t, "cert.pem", pemOf("CERTIFICATE", der)), key: file(t, "key.pem", pemOf("EC PRIVATE KEY", raw))}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t *testing.T, cert, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
