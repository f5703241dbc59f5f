package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/weirproxy/weir/internal/tlsfile"
)

// Config says where Redis (6.2 or newer) or Valkey is. The zero value names no server and is
// refused by Validate.
type Config struct {
	// Addresses are host:port of the server; of some nodes with Cluster; of the sentinels with
	// Sentinel.
	Addresses []string `json:"addresses" yaml:"addresses"`
	// Username and PasswordFile: Redis ACL user. The file is read at each connection, so that a
	// rotated password is taken up; a trailing newline is dropped.
	Username     string `json:"username,omitempty" yaml:"username,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty" yaml:"passwordFile,omitempty"`
	TLS          TLS    `json:"tls,omitempty" yaml:"tls,omitempty"`
	// Cluster: the addresses are nodes of a Redis Cluster.
	Cluster bool `json:"cluster,omitempty" yaml:"cluster,omitempty"`
	// Sentinel: the addresses are sentinels.
	Sentinel Sentinel `json:"sentinel,omitempty" yaml:"sentinel,omitempty"`
	// Timeout bounds one call; 0 stands for 500 ms. A chunk takes 2 ms on a healthy server.
	Timeout time.Duration `json:"timeout,omitempty" yaml:"timeout,omitempty"`
}

// TLS of the connection to Redis. CAFile "" trusts the system's authorities; CertFile and KeyFile
// are the client's own certificate.
type TLS struct {
	Enabled    bool   `json:"enabled,omitempty" yaml:"enabled,omitempty"`
	CAFile     string `json:"caFile,omitempty" yaml:"caFile,omitempty"`
	CertFile   string `json:"certFile,omitempty" yaml:"certFile,omitempty"`
	KeyFile    string `json:"keyFile,omitempty" yaml:"keyFile,omitempty"`
	ServerName string `json:"serverName,omitempty" yaml:"serverName,omitempty"`
}

// Sentinel names the master set that sentinels watch; Master "" means that there are none.
// Username and PasswordFile are for the sentinels themselves, who are never shown the server's.
type Sentinel struct {
	Master       string `json:"master,omitempty" yaml:"master,omitempty"`
	Username     string `json:"username,omitempty" yaml:"username,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty" yaml:"passwordFile,omitempty"`
}

const defaultTimeout = 500 * time.Millisecond

// Validate reports every mistake at once, each with its field.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, reason string) { errs = append(errs, fmt.Errorf("redis.%s: %s", field, reason)) }
	if len(c.Addresses) == 0 {
		bad("addresses", "none given; name at least one host:port")
	}
	for i, a := range c.Addresses {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			bad(fmt.Sprintf("addresses[%d]", i), fmt.Sprintf("%q is not host:port", a))
		}
	}
	if c.Cluster && c.Sentinel.Master != "" {
		bad("sentinel.master", "a server is either a cluster or behind sentinels; leave one out")
	}
	if len(c.Addresses) > 1 && !c.Cluster && c.Sentinel.Master == "" {
		bad("addresses", "several are given; say cluster: true or name sentinel.master")
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		bad("tls", "certFile and keyFile go together")
	}
	if !c.TLS.Enabled && (c.TLS.CAFile != "" || c.TLS.CertFile != "" || c.TLS.ServerName != "") {
		bad("tls.enabled", "false, but other tls settings are given; set it to true")
	}
	if c.Timeout < 0 {
		bad("timeout", "negative")
	}
	return errors.Join(errs...)
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return defaultTimeout
	}
	return c.Timeout
}

func (t TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	return tlsfile.Files{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, ServerName: t.ServerName}.Config("redis.tls")
}

func readPassword(field, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("redis.%s: %w", field, err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
