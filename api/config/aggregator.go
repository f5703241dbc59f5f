package config

import "time"

// Aggregator is weir-aggregator's configuration: the owner of usage partitions.
type Aggregator struct {
	// Instance is this process's name among the installation's aggregators, the same after a restart (a
	// StatefulSet's pod name), so that a quick restart moves no partition. Empty: the host's name.
	Instance string `yaml:"instance"`
	// Group is the consumer group by which aggregators share the partitions.
	Group string `yaml:"group"`
	// Handover is what SIGTERM does: Leave passes partitions on at once; Stay keeps them for a restart
	// within the session time-out, for StatefulSets that restart in place.
	Handover string `yaml:"handover"`
	// Policies is a directory of QuotaPolicy files (*.yaml, *.yml, *.json), published with origin file and
	// looked through each second. Every aggregator that is given one has the same files. Empty: none.
	Policies string `yaml:"policies"`
	// IdentityKeyFile is the file of the installation's identity key, 32 bytes: the same for every program.
	// `weir key` makes one.
	IdentityKeyFile string `yaml:"identityKeyFile"`
	// Flush is how often sidecars report. Longer costs Kafka less and lets a first front pass longer.
	Flush time.Duration `yaml:"flush"`
	// Tick is how often an owner decides while a counter is hot. Longer costs Kafka less.
	Tick time.Duration `yaml:"tick"`
	// MaxCountersPerTarget is how many counters one target may have alive; it bounds memory here and in
	// Redis. Beyond it new keys share their limit's overflow counter.
	MaxCountersPerTarget int `yaml:"maxCountersPerTarget"`
	// Topics is how the topics are made, by `weir-aggregator topics ensure`.
	Topics TopicSettings `yaml:"topics"`
	// Kafka is where usage comes from and decisions go.
	Kafka Kafka `yaml:"kafka"`
	// Redis keeps the totals.
	Redis Redis `yaml:"redis"`
	// Admin is the program's own HTTP server.
	Admin Admin `yaml:"admin"`
	// Log is what is written to stderr.
	Log Log `yaml:"log"`
	// Stop is how it ends.
	Stop Stop `yaml:"stop"`
}

// TopicSettings is how the topics are made.
type TopicSettings struct {
	// Partitions is how many usage and decisions have: how far the work can be shared out. Fixed at installation.
	Partitions int32 `yaml:"partitions"`
	// Replication is the number of replicas; -1 is the brokers' own default. 3 is right for production.
	Replication int16 `yaml:"replication"`
	// MinInSync is min.insync.replicas; 0 is the brokers' own default. 2 is right with 3 replicas.
	MinInSync int `yaml:"minInSync"`
	// UsageRetention is how long usage keeps reports, 10m and more: so long an outage of all aggregators loses
	// nothing. It costs disk. An hour or more is right with limits that count over a calendar's period.
	UsageRetention time.Duration `yaml:"usageRetention"`
}

// Redis is how to reach Redis 6.2 or later, or Valkey: one server, a cluster, or sentinels.
type Redis struct {
	// Addresses are host:port: the server, some of the cluster's nodes, or the sentinels.
	Addresses []string `yaml:"addresses"`
	// Cluster is whether the addresses are nodes of a Redis Cluster.
	Cluster bool `yaml:"cluster"`
	// Sentinel is for addresses that are sentinels.
	Sentinel Sentinel `yaml:"sentinel"`
	// Timeout is the bound of one call; a chunk of counters takes some milliseconds on a healthy server.
	Timeout time.Duration `yaml:"timeout"`
	// Username is whom to authenticate as. Empty: the default user.
	Username string `yaml:"username"`
	// PasswordFile is a file that holds the password; a newline at its end is not part of it. Empty: none.
	PasswordFile string `yaml:"passwordFile"`
	// TLS of the connections to Redis.
	TLS TLS `yaml:"tls"`
}

// Sentinel is the set of sentinels that watch a Redis.
type Sentinel struct {
	// Master is the name of the master set; with it the addresses are sentinels. Empty: there are none.
	Master string `yaml:"master"`
	// Username is whom to authenticate as with the sentinels themselves. Empty: the default user.
	Username string `yaml:"username"`
	// PasswordFile is a file that holds the password for the sentinels themselves. Empty: none.
	PasswordFile string `yaml:"passwordFile"`
}

// DefaultAggregator is what holds where neither file nor flag says otherwise.
func DefaultAggregator() Aggregator {
	return Aggregator{
		Group:                "weir-aggregator",
		Handover:             "Leave",
		Flush:                50 * time.Millisecond,
		Tick:                 25 * time.Millisecond,
		MaxCountersPerTarget: 200_000,
		Topics:               TopicSettings{Partitions: 8, Replication: -1, UsageRetention: 10 * time.Minute},
		Kafka:                defaultKafka(),
		Redis:                Redis{Timeout: 500 * time.Millisecond},
		Admin:                Admin{Address: "tcp://127.0.0.1:9193"},
		Log:                  Log{Level: "info"},
		Stop:                 Stop{Grace: 5 * time.Second},
	}
}
