package config

import "time"

// Sidecar is weir-sidecar's configuration: the check server beside one Envoy.
type Sidecar struct {
	// Listen is where Envoy asks: unix:///path?mode=0660 (a shared volume and group) or
	// tcp://127.0.0.1:9191 (open to every container of the pod).
	Listen string `yaml:"listen"`
	// Server is which check server answers: own, which costs a fraction of the CPU and memory, or grpc (grpc-go), the
	// way back should the own one not get on with an Envoy.
	Server string `yaml:"server"`
	// Pod is which pod this sidecar is in.
	Pod Pod `yaml:"pod"`
	// Targets are whose requests are counted, as namespace/kind/name, where they are not found from the
	// pod's owner and labels: by hand, and for gateways whose Envoy names one of them in
	// context_extensions["weir.target"].
	Targets []string `yaml:"targets" flag:"target"`
	// IdentityKeyFile is the file of the installation's identity key, 32 bytes: the same for every program.
	// `weir key` makes one.
	IdentityKeyFile string `yaml:"identityKeyFile"`
	// StateDir is where the last good policies are kept over a restart, in one file. It needs no backup.
	// Empty: none are kept, and a restart while Kafka is away fails each check until it is back.
	StateDir string `yaml:"stateDir"`
	// MaxCounters is how many counters may have a slot of their own; it bounds memory. Beyond it new keys
	// share their limit's overflow counter.
	MaxCounters int `yaml:"maxCounters"`
	// Kafka is where usage goes and decisions come from.
	Kafka Kafka `yaml:"kafka"`
	// Admin is the program's own HTTP server.
	Admin Admin `yaml:"admin"`
	// Log is what is written to stderr.
	Log Log `yaml:"log"`
	// Stop is how it ends.
	Stop Stop `yaml:"stop"`
}

// Pod is which pod a sidecar is in; the chart's injection sets it from the downward API.
type Pod struct {
	// Namespace is the pod's. With the name it names this sidecar in reports and status.
	Namespace string `yaml:"namespace"`
	// Name is the pod's, unique in its namespace. Empty: the host's name.
	Name string `yaml:"name"`
	// OwnerKind is the kind of the workload that the pod belongs to (Deployment, StatefulSet, …), for
	// policies on it.
	OwnerKind string `yaml:"ownerKind"`
	// OwnerName is the name of that workload.
	OwnerName string `yaml:"ownerName"`
	// Labels are the pod's, for policies on a Service: its selector is matched against them.
	Labels map[string]string `yaml:"labels"`
}

// DefaultSidecar is what holds where neither file nor flag says otherwise.
func DefaultSidecar() Sidecar {
	return Sidecar{
		Listen:      "unix:///run/weir/check.sock",
		Server:      "own",
		Pod:         Pod{Namespace: "default"},
		MaxCounters: 50_000,
		Kafka:       defaultKafka(),
		Admin:       Admin{Address: "tcp://127.0.0.1:9192"},
		Log:         Log{Level: "info"},
		Stop:        Stop{Grace: 5 * time.Second},
	}
}
