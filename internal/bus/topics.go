package bus

import (
	"fmt"
	"time"
)

// leastUsageRetention is what the replay of a new owner may need.
const leastUsageRetention = 10 * time.Minute

// Topics names weir's four topics and how they are made.
type Topics struct {
	// Usage, Decisions, Policies and Status are the topics' names. Defaults: weir.usage,
	// weir.decisions, weir.policies, weir.status.
	Usage     string `yaml:"usage,omitempty" json:"usage,omitempty"`
	Decisions string `yaml:"decisions,omitempty" json:"decisions,omitempty"`
	Policies  string `yaml:"policies,omitempty" json:"policies,omitempty"`
	Status    string `yaml:"status,omitempty" json:"status,omitempty"`
	// Partitions of usage and of decisions; fixed at installation. Default: 8.
	Partitions int32 `yaml:"partitions,omitempty" json:"partitions,omitempty"`
	// Replication is the number of replicas. Default: -1, the brokers' own default
	// (default.replication.factor): 3 is right for production.
	Replication int16 `yaml:"replication,omitempty" json:"replication,omitempty"`
	// MinInSync is min.insync.replicas. Default: 0, the brokers' own; 2 is right with 3 replicas.
	MinInSync int `yaml:"minInSync,omitempty" json:"minInSync,omitempty"`
	// UsageRetention is how long usage keeps its records, ms precision. Default and least: 10 min.
	UsageRetention time.Duration `yaml:"usageRetention,omitempty" json:"usageRetention,omitempty"`
}

// WithDefaults returns t with every unset value at its default.
func (t Topics) WithDefaults() Topics {
	t.Usage = orElse(t.Usage, "weir.usage")
	t.Decisions = orElse(t.Decisions, "weir.decisions")
	t.Policies = orElse(t.Policies, "weir.policies")
	t.Status = orElse(t.Status, "weir.status")
	t.Partitions = orElse(t.Partitions, 8)
	t.Replication = orElse(t.Replication, -1)
	t.UsageRetention = max(t.UsageRetention, leastUsageRetention)
	return t
}

// Validate returns what is wrong with t; the names of its fields are those of the programs' settings.
func (t Topics) Validate() error {
	if t.UsageRetention != 0 && t.UsageRetention < leastUsageRetention {
		return fmt.Errorf("topics.usageRetention: %v is below %v, which a new owner may have to read", t.UsageRetention, leastUsageRetention)
	}
	return nil
}

// Change is one difference between a topic as it is and as it should be.
type Change struct {
	Topic string
	// Setting is a topic setting, "partitions", "topic" (it does not exist), or "acl".
	Setting string
	// Have is what is there, "" if nothing; Want is what should be.
	Have, Want string
	// Applied: Ensure made it so.
	Applied bool
	// Manual: Ensure cannot change this; a person must.
	Manual bool
}

// String says the difference for a person.
func (c Change) String() string {
	switch {
	case c.Setting == "topic" && c.Applied:
		return fmt.Sprintf("topic %s: created with %s", c.Topic, c.Want)
	case c.Setting == "topic":
		return fmt.Sprintf("topic %s: does not exist, want %s", c.Topic, c.Want)
	case c.Applied:
		return fmt.Sprintf("topic %s: %s was %s, set to %s", c.Topic, c.Setting, orElse(c.Have, "unset"), c.Want)
	}
	return fmt.Sprintf("topic %s: %s is %s, want %s", c.Topic, c.Setting, orElse(c.Have, "unset"), c.Want)
}
