package store

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/parts"
)

// The contract on each kind of server that an installation may have. The store's user may do what weir does
// and no more, and whoever does not authenticate may not even do that.

// wantServers skips a test that starts servers, unless the environment says that real ones are wanted.
func wantServers(t *testing.T) {
	t.Helper()
	if os.Getenv("WEIR_TEST_REDIS") == "" {
		t.Skip("WEIR_TEST_REDIS is not set")
	}
}

func TestContractRedisCluster(t *testing.T) {
	wantServers(t)
	nodes := parts.StartRedisCluster(t)
	guard(t, nodes...)
	c := Config{
		Addresses: []string{nodes[1].Addr()}, // the others are found
		Cluster:   true, Username: "weir", PasswordFile: file(t, "s3cret\n"),
	}
	contractOn(t, c, nodes...)

	empty(t, nodes)
	r := redisAt(t, c)
	for p := range int32(48) { // so many partitions are on every node
		o := Owner{Partition: p, LogID: logA, Epoch: 5}
		if _, err := r.Claim(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		must(t, r.Flush(t.Context(), &Flush{Owner: o, Sequence: 1, Counters: []Counter{whole(c1, 1, uint64(p))}}))
	}
	for _, n := range nodes {
		if keys := ask(t, n, "DBSIZE"); keys == "0" {
			t.Errorf("node %s holds no partition", n.Addr())
		}
	}
}

// The sentinel's user is another than the server's: neither knows the other's.
func TestContractSentinel(t *testing.T) {
	wantServers(t)
	master := parts.StartRedis(t, parts.RedisOpts{})
	sentinel := parts.StartSentinel(t, "weir-master", master)
	guard(t, master)
	ask(t, sentinel, "ACL", "SETUSER", "watcher", "on", ">w4tch", "allchannels", "-@all",
		"+@connection", "+sentinel", "+subscribe", "+psubscribe", "+unsubscribe", "+punsubscribe")
	ask(t, sentinel, "ACL", "SETUSER", "default", "-@all", "+ping")
	c := Config{
		Addresses: []string{sentinel.Addr()}, Username: "weir", PasswordFile: file(t, "s3cret\n"),
		Sentinel: Sentinel{Master: "weir-master", Username: "watcher", PasswordFile: file(t, "w4tch\n")},
	}
	contractOn(t, c, master)

	c.Sentinel.Master = "another"
	refused(t, c)
}

// The server asks for the client's certificate too.
func TestContractTLS(t *testing.T) {
	wantServers(t)
	port, err := parts.FreePort()
	must(t, err)
	cert, key := certificate(t)
	server := parts.StartRedis(t, parts.RedisOpts{Args: []string{
		"--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
	}})
	guard(t, server)
	c := Config{
		Addresses: []string{fmt.Sprintf("127.0.0.1:%d", port)}, Username: "weir", PasswordFile: file(t, "s3cret\n"),
		TLS: TLS{Enabled: true, CAFile: cert, CertFile: cert, KeyFile: key},
	}
	contractOn(t, c, server)

	for name, spoil := range map[string]func(*Config){
		"NoTLS":            func(c *Config) { c.TLS = TLS{} },
		"UnknownAuthority": func(c *Config) { c.TLS.CAFile = "" },
		"AnotherName":      func(c *Config) { c.TLS.ServerName = "another" },
		"NoCertificate":    func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = "", "" },
		"WrongPassword":    func(c *Config) { c.PasswordFile = file(t, "guess") },
		"NoUser":           func(c *Config) { c.Username, c.PasswordFile = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			spoil(&c)
			refused(t, c)
		})
	}
}

// contractOn runs the contract with the store that c names, on servers that hold nothing else.
func contractOn(t *testing.T, c Config, servers ...*parts.Redis) {
	c.Timeout = 5 * time.Second
	contract(t, func(t *testing.T) subject {
		s := redisAt(t, c).subject()
		s.lose = func() { empty(t, servers) }
		s.lose()
		return s
	})
}

func empty(t *testing.T, servers []*parts.Redis) {
	for _, s := range servers {
		ask(t, s, "FLUSHALL")
	}
}

func refused(t *testing.T, c Config) {
	t.Helper()
	_, err := redisAt(t, c).Claim(t.Context(), owner(logA, 5))
	want(t, err, ErrUnavailable)
}

// guard gives the servers the user weir, with the fewest rights that do, and leaves to everybody else what
// the test itself needs.
func guard(t *testing.T, servers ...*parts.Redis) {
	for _, s := range servers {
		ask(t, s, "ACL", "SETUSER", "weir", "on", ">s3cret", "~{weir:*", "-@all", "+@connection", "+role", "+cluster|slots",
			"+cluster|shards", "+eval", "+evalsha", "+hgetall", "+hmget", "+hset", "+del", "+pexpire")
		ask(t, s, "ACL", "SETUSER", "default", "-@all", "+ping", "+flushall", "+dbsize")
	}
}

func ask(t *testing.T, s *parts.Redis, command ...string) string {
	t.Helper()
	answer, err := s.Do(command...)
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// certificate makes one that is its own authority, for both sides.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		file(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}
