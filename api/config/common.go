package config

import "time"

// Log is what a program writes to stderr: one JSON object a line.
type Log struct {
	// Level is the detail: debug, info, warn or error. A line is written when a state changes, never for a
	// request, so info suits production.
	Level string `yaml:"level"`
}

// Admin is the program's own HTTP server: /healthz, /readyz, /metrics, and /debug for this machine.
type Admin struct {
	// Address is where to listen: tcp://host:port or unix:///path?mode=0660. /debug answers on loopback
	// only, wherever this listens. Empty: no admin server, and then no probes either.
	Address string `yaml:"address"`
	// MetricsAddress is for /metrics alone, apart from the rest, so that a network policy can open it to
	// the collector only. Empty: /metrics is served on the address above.
	MetricsAddress string `yaml:"metricsAddress"`
}

// Kafka is how to reach the brokers.
type Kafka struct {
	// Brokers are host:port addresses to start from; one that answers is enough.
	Brokers []string `yaml:"brokers"`
	// ClientID is this client's name in the brokers' logs, metrics and quotas. Empty: the program's name.
	ClientID string `yaml:"clientID"`
	// RackID is where this program runs, in the brokers' terms (broker.rack). With a rack-aware replica
	// selector on the brokers, reads then stay within the rack. Empty: reads go to the leader.
	RackID string `yaml:"rackID"`
	// Acks is what a record waits for: all (in-sync replicas) or leader. leader is faster by one hop and may
	// lose what a failing broker alone had; counts heal with the next report.
	Acks string `yaml:"acks"`
	// TLS of the connections to brokers.
	TLS TLS `yaml:"tls"`
	// SASL authentication with brokers.
	SASL SASL `yaml:"sasl"`
	// Topics in use, to be changed where several installations share a Kafka cluster.
	Topics TopicNames `yaml:"topics"`
}

// TLS of the connections to a server.
type TLS struct {
	// Enabled is whether connections are encrypted.
	Enabled bool `yaml:"enabled"`
	// CAFile is a PEM file of the authorities that sign servers' certificates. Empty: the system's.
	CAFile string `yaml:"caFile"`
	// CertFile is this client's certificate (PEM), for mutual TLS. It is read anew for each connection,
	// so a rotated one is taken up.
	CertFile string `yaml:"certFile"`
	// KeyFile is the key of the certificate (PEM).
	KeyFile string `yaml:"keyFile"`
	// ServerName is the name expected in servers' certificates. Empty: the host that is dialled.
	ServerName string `yaml:"serverName"`
}

// SASL authentication with brokers.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Empty: no authentication. PLAIN sends the
	// password as it is: use it with TLS only.
	Mechanism string `yaml:"mechanism"`
	// Username is whom to authenticate as.
	Username string `yaml:"username"`
	// PasswordFile is a file that holds the password; a newline at its end is not part of it. It is read
	// anew for each connection, so a rotated one is taken up.
	PasswordFile string `yaml:"passwordFile"`
}

// TopicNames are the four topics. Every program of an installation has the same.
type TopicNames struct {
	// Usage is what sidecars counted, and the claims of owners.
	Usage string `yaml:"usage"`
	// Decisions are what aggregators decided.
	Decisions string `yaml:"decisions"`
	// Policies are the policies in force.
	Policies string `yaml:"policies"`
	// Status is what each sidecar says of itself.
	Status string `yaml:"status"`
}

// Stop is how a program ends.
type Stop struct {
	// Grace is how long it may take to finish after SIGTERM: the last reports are sent and acknowledged
	// within it. Keep it below the platform's own (Kubernetes: terminationGracePeriodSeconds).
	Grace time.Duration `yaml:"grace"`
}

func defaultKafka() Kafka {
	return Kafka{
		Acks: "all",
		Topics: TopicNames{
			Usage: "weir.usage", Decisions: "weir.decisions", Policies: "weir.policies", Status: "weir.status",
		},
	}
}
