package bus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// SASL mechanisms.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Acknowledgements a record waits for.
const (
	AcksAll    = "all"
	AcksLeader = "leader"
)

// Config says how to reach Kafka. Only Brokers is required.
type Config struct {
	// Brokers are host:port addresses to start from; one that answers is enough.
	Brokers []string `yaml:"brokers" json:"brokers"`
	// ClientID names this client in the brokers' logs, metrics and quotas. Default: weir.
	ClientID string `yaml:"clientID,omitempty" json:"clientID,omitempty"`
	// RackID is where this client is (broker.rack): with a rack-aware replica selector on the
	// brokers, reads go to a replica of the same rack. Empty: reads go to the leader.
	RackID string `yaml:"rackID,omitempty" json:"rackID,omitempty"`
	// TLS of the connections to brokers.
	TLS TLS `yaml:"tls,omitempty" json:"tls,omitzero"`
	// SASL authentication; none without a mechanism.
	SASL SASL `yaml:"sasl,omitempty" json:"sasl,omitzero"`
	// Acks a record waits for: all (in-sync replicas) or leader. Default: all.
	Acks string `yaml:"acks,omitempty" json:"acks,omitempty"`
	// DialTimeout bounds making one connection. Default: 3s.
	DialTimeout time.Duration `yaml:"dialTimeout,omitempty" json:"dialTimeout,omitempty"`
	// RequestTimeout bounds one request other than a produce or a waiting fetch. Default: 5s.
	RequestTimeout time.Duration `yaml:"requestTimeout,omitempty" json:"requestTimeout,omitempty"`
	// ProduceTimeout bounds a record from Send to its acknowledgement. Default: 2s.
	ProduceTimeout time.Duration `yaml:"produceTimeout,omitempty" json:"produceTimeout,omitempty"`
	// BackoffMin and BackoffMax bound the jittered wait before a connection is tried again.
	// Defaults: 50ms and 2s.
	BackoffMin time.Duration `yaml:"backoffMin,omitempty" json:"backoffMin,omitempty"`
	BackoffMax time.Duration `yaml:"backoffMax,omitempty" json:"backoffMax,omitempty"`

	// State, if set, is told what Dial waits for, and "" when it waits no more; only on change.
	State func(reason string) `yaml:"-" json:"-"`
}

// TLS of the connections to brokers.
type TLS struct {
	// Enabled encrypts the connections.
	Enabled bool `yaml:"enabled,omitempty" json:"enabled,omitempty"`
	// CAFile is a PEM file of authorities that sign brokers' certificates, read anew for each connection.
	// Default: the system's.
	CAFile string `yaml:"caFile,omitempty" json:"caFile,omitempty"`
	// CertFile and KeyFile are this client's certificate and key (PEM), for mutual TLS. They are
	// read anew for each connection, so a rotated pair is taken up.
	CertFile string `yaml:"certFile,omitempty" json:"certFile,omitempty"`
	KeyFile  string `yaml:"keyFile,omitempty" json:"keyFile,omitempty"`
	// ServerName is the name expected in brokers' certificates. Default: the host dialled.
	ServerName string `yaml:"serverName,omitempty" json:"serverName,omitempty"`
}

// SASL authentication with brokers.
type SASL struct {
	// Mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Empty: no authentication.
	Mechanism string `yaml:"mechanism,omitempty" json:"mechanism,omitempty"`
	// Username to authenticate as.
	Username string `yaml:"username,omitempty" json:"username,omitempty"`
	// PasswordFile holds the password; a newline at its end is not part of it. It is read anew for each
	// connection, so a rotated one is taken up.
	PasswordFile string `yaml:"passwordFile,omitempty" json:"passwordFile,omitempty"`
}

// WithDefaults returns c with every unset value at its default.
func (c Config) WithDefaults() Config {
	c.ClientID = orElse(c.ClientID, "weir")
	c.Acks = orElse(c.Acks, AcksAll)
	c.DialTimeout = orElse(c.DialTimeout, 3*time.Second)
	c.RequestTimeout = orElse(c.RequestTimeout, 5*time.Second)
	c.ProduceTimeout = orElse(c.ProduceTimeout, 2*time.Second)
	c.BackoffMin = orElse(c.BackoffMin, 50*time.Millisecond)
	c.BackoffMax = orElse(c.BackoffMax, 2*time.Second)
	return c
}

// Validate returns all that is wrong with c, each with the field's name, joined. Files are checked
// to be readable, not to be right.
func (c Config) Validate() error {
	c = c.WithDefaults()
	errs := []error{c.validateBrokers(), c.TLS.validate(), c.SASL.validate()}
	if c.Acks != AcksAll && c.Acks != AcksLeader {
		errs = append(errs, fmt.Errorf("kafka.acks: %q is neither %s nor %s", c.Acks, AcksAll, AcksLeader))
	}
	if strings.ContainsFunc(c.ClientID, func(r rune) bool { return !isName(r) }) {
		errs = append(errs, fmt.Errorf("kafka.clientID: %q may hold letters, digits, '.', '_' and '-' only", c.ClientID))
	}
	for name, d := range map[string]time.Duration{
		"dialTimeout": c.DialTimeout, "requestTimeout": c.RequestTimeout, "produceTimeout": c.ProduceTimeout,
		"backoffMin": c.BackoffMin, "backoffMax": c.BackoffMax,
	} {
		if d < time.Millisecond || d > time.Minute {
			errs = append(errs, fmt.Errorf("kafka.%s: %v is outside 1ms to 1m", name, d))
		}
	}
	if c.BackoffMin > c.BackoffMax {
		errs = append(errs, fmt.Errorf("kafka.backoffMin: %v is above backoffMax %v", c.BackoffMin, c.BackoffMax))
	}
	return errors.Join(errs...)
}

func (c Config) validateBrokers() error {
	if len(c.Brokers) == 0 {
		return errors.New("kafka.brokers: name at least one host:port")
	}
	var errs []error
	for i, b := range c.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			errs = append(errs, fmt.Errorf("kafka.brokers[%d]: %q is not host:port", i, b))
		}
	}
	return errors.Join(errs...)
}

func (t TLS) validate() error {
	if !t.Enabled {
		if t != (TLS{}) {
			return errors.New("kafka.tls: files or a server name are given, but tls.enabled is not true")
		}
		return nil
	}
	errs := []error{readable("kafka.tls.caFile", t.CAFile), readable("kafka.tls.certFile", t.CertFile), readable("kafka.tls.keyFile", t.KeyFile)}
	if (t.CertFile == "") != (t.KeyFile == "") {
		errs = append(errs, errors.New("kafka.tls: certFile and keyFile go together, one is missing"))
	}
	return errors.Join(errs...)
}

func (s SASL) validate() error {
	switch s.Mechanism {
	case "":
		if s != (SASL{}) {
			return fmt.Errorf("kafka.sasl.mechanism: name %s, %s or %s", Plain, ScramSHA256, ScramSHA512)
		}
		return nil
	case Plain, ScramSHA256, ScramSHA512:
	default:
		return fmt.Errorf("kafka.sasl.mechanism: %q is none of %s, %s, %s", s.Mechanism, Plain, ScramSHA256, ScramSHA512)
	}
	var errs []error
	if s.Username == "" {
		errs = append(errs, errors.New("kafka.sasl.username: is missing"))
	}
	if s.PasswordFile == "" {
		errs = append(errs, errors.New("kafka.sasl.passwordFile: is missing"))
	}
	return errors.Join(append(errs, readable("kafka.sasl.passwordFile", s.PasswordFile))...)
}

func readable(field, path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return f.Close()
}

func isName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func orElse[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
