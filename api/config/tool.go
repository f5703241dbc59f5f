package config

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
