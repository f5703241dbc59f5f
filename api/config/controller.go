package config

import "time"

// Controller is weir-controller's configuration: QuotaPolicy objects to the policy topic, their status from
// the status topic, and the injection of sidecars. Several run; one at a time writes.
type Controller struct {
	// Namespace is the controller's own, where its lease, the Secrets that it copies and its certificate are.
	// Empty: that of its service account.
	Namespace string `yaml:"namespace"`
	// WatchNamespaces are the namespaces whose policies and pods are looked at. Empty: all.
	WatchNamespaces []string `yaml:"watchNamespaces"`
	// Kubeconfig is a file that says how to reach kube-apiserver. Empty: as a pod in the cluster.
	Kubeconfig string `yaml:"kubeconfig"`
	// IdentityKeyFile is the file of the installation's identity key, 32 bytes: the same for every program.
	// `weir key` makes one.
	IdentityKeyFile string `yaml:"identityKeyFile"`
	// Kafka is where policies go and where sidecars say what they enforce.
	Kafka Kafka `yaml:"kafka"`
	// LeaderElection is how several controllers agree which of them writes.
	LeaderElection LeaderElection `yaml:"leaderElection"`
	// Metrics is the server of /metrics, apart from the others, since it asks who is there.
	Metrics ControllerMetrics `yaml:"metrics"`
	// Admin is the program's own HTTP server. The controller's metrics are not there.
	Admin ControllerAdmin `yaml:"admin"`
	// Injection is the webhook that puts sidecars into pods.
	Injection Injection `yaml:"injection"`
	// Secrets are those that are copied into the namespaces where sidecars are injected.
	Secrets Secrets `yaml:"secrets"`
	// Log is what is written to stderr.
	Log Log `yaml:"log"`
	// Stop is how it ends.
	Stop Stop `yaml:"stop"`
}

// LeaderElection is how several controllers agree which of them writes.
type LeaderElection struct {
	// Enabled is whether to wait for the lease before writing. Without it only one controller may run.
	Enabled bool `yaml:"enabled"`
	// Lease is the name of the Lease in the controller's own namespace.
	Lease string `yaml:"lease"`
}

// ControllerMetrics is the server of /metrics.
type ControllerMetrics struct {
	// Address is where to listen, tcp://host:port. Empty: no metrics are served.
	Address string `yaml:"address"`
	// Authorize is whether to serve over TLS, and only those whom kube-apiserver knows and allows to get
	// /metrics; the certificate is made at start. Otherwise it is plain HTTP, for whoever can connect.
	Authorize bool `yaml:"authorize"`
}

// ControllerAdmin is the HTTP server of /healthz, /readyz, and /debug for this machine.
type ControllerAdmin struct {
	// Address is where to listen: tcp://host:port or unix:///path?mode=0660. Empty: no admin server, and
	// then no probes either.
	Address string `yaml:"address"`
}

// Injection is the webhook that puts sidecars into pods.
type Injection struct {
	// Enabled is whether the webhook is served.
	Enabled bool `yaml:"enabled"`
	// Settings is the file that says what is injected, the same that `weir inject --settings` reads. Required
	// with injection.
	Settings string `yaml:"settings"`
	// Address is where to listen, tcp://host:port.
	Address string `yaml:"address"`
	// Certificates of the webhook.
	Certificates Certificates `yaml:"certificates"`
}

// Certificates of the webhook: whence they come, and where kube-apiserver is told of their authority.
type Certificates struct {
	// Mode is SelfManaged (made, renewed and announced by the controller itself) or Files (of a Secret that
	// is mounted: cert-manager's or your own).
	Mode string `yaml:"mode"`
	// Directory holds tls.crt and tls.key in mode Files; a pair that changes is taken up.
	Directory string `yaml:"directory"`
	// Secret of the controller's own namespace where the pair is kept in mode SelfManaged, for all replicas.
	Secret string `yaml:"secret"`
	// Service is the name of the webhook's Service in the controller's own namespace: the certificate's host.
	Service string `yaml:"service"`
	// Configuration is the name of the MutatingWebhookConfiguration that gets the authority in mode SelfManaged.
	Configuration string `yaml:"configuration"`
}

// Secrets are those of the controller's own namespace that are copied, under the same names, into the
// namespaces where sidecars are injected.
type Secrets struct {
	// Identity is the name of the identity key's Secret. Empty: it is not copied.
	Identity string `yaml:"identity"`
	// Kafka is the name of the Secret of the sidecars' Kafka client. Empty: they need none.
	Kafka string `yaml:"kafka"`
}

// DefaultController is what holds where neither file nor flag says otherwise.
func DefaultController() Controller {
	return Controller{
		Kafka:          defaultKafka(),
		LeaderElection: LeaderElection{Enabled: true, Lease: "weir-controller"},
		Metrics:        ControllerMetrics{Address: "tcp://0.0.0.0:9196", Authorize: true},
		Admin:          ControllerAdmin{Address: "tcp://127.0.0.1:9195"},
		Injection: Injection{Enabled: true, Address: "tcp://0.0.0.0:9443", Certificates: Certificates{
			Mode: "SelfManaged", Secret: "weir-webhook-tls", Service: "weir-webhook", Configuration: "weir-injector",
		}},
		Secrets: Secrets{Identity: "weir-identity"},
		Log:     Log{Level: "info"},
		Stop:    Stop{Grace: 5 * time.Second},
	}
}
