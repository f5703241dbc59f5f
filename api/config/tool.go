package config

import "time"

// Tool is the configuration of the weir commands that talk to an installation.
type Tool struct {
	// IdentityKeyFile is the file of the installation's identity key, 32 bytes: values of secret client
	// sources are published as hashes made with it.
	IdentityKeyFile string `yaml:"identityKeyFile"`
	// Kafka is where policies are published.
	Kafka Kafka `yaml:"kafka"`
}

// DefaultTool is what holds where neither file nor flag says otherwise.
func DefaultTool() Tool { return Tool{Kafka: defaultKafka()} }

// Check is what `weir check` looks at: the parts of an installation, each as the programs reach it. What is not
// named is skipped.
type Check struct {
	// IdentityKeyFile is the file of the installation's identity key, to be compared with what the programs
	// have. Empty: theirs are compared with each other only.
	IdentityKeyFile string `yaml:"identityKeyFile"`
	// Kafka is where the topics are.
	Kafka Kafka `yaml:"kafka"`
	// Topics is how the topics should be, as the aggregators' file has it; with 0 partitions, as many as the
	// installation began with.
	Topics TopicSettings `yaml:"topics"`
	// Redis is where the totals are.
	Redis Redis `yaml:"redis"`
	// Kubernetes is the cluster that weir runs in.
	Kubernetes Kubernetes `yaml:"kubernetes"`
}

// Kubernetes is the cluster that weir runs in, if it does.
type Kubernetes struct {
	// Kubeconfig is a file that says how to reach kube-apiserver. Empty: that of the environment ($KUBECONFIG), with
	// a context named ~/.kube/config, or as a pod in the cluster; where there is none of these, Kubernetes is not
	// looked at.
	Kubeconfig string `yaml:"kubeconfig" flag:"kubeconfig"`
	// Context is the context of the kubeconfig. Empty: its current one.
	Context string `yaml:"context" flag:"context"`
	// Namespace is the installation's.
	Namespace string `yaml:"namespace" flag:"namespace"`
	// IdentitySecret is the name of the Secret of the identity key.
	IdentitySecret string `yaml:"identitySecret" flag:"identity-secret"`
	// CertificateSecret is the name of the Secret of the injector's certificate.
	CertificateSecret string `yaml:"certificateSecret" flag:"certificate-secret"`
	// IstioNamespace is where istiod and its ConfigMap istio are, if they are.
	IstioNamespace string `yaml:"istioNamespace" flag:"istio-namespace"`
}

// DefaultCheck is what holds where neither file nor flag says otherwise.
func DefaultCheck() Check {
	return Check{
		Kafka:  defaultKafka(),
		Topics: TopicSettings{Replication: -1},
		Redis:  Redis{Timeout: 500 * time.Millisecond},
		Kubernetes: Kubernetes{
			Namespace: "weir-system", IdentitySecret: "weir-identity", CertificateSecret: "weir-webhook-tls", IstioNamespace: "istio-system",
		},
	}
}
