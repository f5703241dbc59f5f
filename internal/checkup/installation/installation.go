package installation

import (
	"context"
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
)

// Config says where the installation is and how it should be.
type Config struct {
	// Kafka without brokers: all that needs it is skipped.
	Kafka bus.Config
	// Topics as they should be. Partitions 0: as the installation's record says.
	Topics bus.Topics
	// Redis without addresses: its checks are skipped.
	Redis store.Config
	// KeyFile is the identity key's file; "": keys are compared with each other only.
	KeyFile string
	// Version is this program's; "" where it is not known.
	Version string
	// Watch is how long owners are listened to; 0 stands for 2 s. A header comes each 25 to 100 ms.
	Watch time.Duration
}

const defaultWatch = 2 * time.Second

// leastRedisTimeout is enough for a connection to be made: the setting is for a running aggregator's calls.
const leastRedisTimeout = 3 * time.Second

// Checks are the checks in their order. They share what they read, so they run one after the other; Close ends what they
// opened.
type Checks struct {
	kafka *kafka
	redis *redis
	cfg   Config
}

// New returns the checks of an installation. It opens nothing.
func New(cfg Config) *Checks {
	if cfg.Watch == 0 {
		cfg.Watch = defaultWatch
	}
	cfg.Redis.Timeout = max(cfg.Redis.Timeout, leastRedisTimeout)
	return &Checks{kafka: &kafka{cfg: cfg}, redis: &redis{cfg: cfg.Redis}, cfg: cfg}
}

// Close ends connections.
func (c *Checks) Close() {
	c.kafka.close()
	c.redis.close()
}

// All are the checks by name, in their order. What is not named has one that says so.
func (c *Checks) All() []checkup.Named {
	type check struct {
		name         string
		kafka, redis bool // needs it
		f            func(context.Context) []checkup.Finding
	}
	var all []checkup.Named
	for _, k := range []check{
		{"kafka.reachable", false, false, c.reachable},
		{"kafka.topics", true, false, c.topics},
		{"kafka.installation", true, false, c.installation},
		{"redis.reachable", false, false, c.redisReachable},
		{"redis.settings", false, true, c.redisSettings},
		{"retention", true, false, c.retention},
		{"owners", true, false, c.owners},
		{"sidecars.live", true, false, c.sidecars},
		{"sidecars.versions", true, false, c.versions},
		{"sidecars.policies", true, false, c.withoutPolicy},
		{"policies.valid", true, false, c.valid},
		{"policies.in-force", true, false, c.inForce},
	} {
		if k.kafka && len(c.cfg.Kafka.Brokers) == 0 || k.redis && len(c.cfg.Redis.Addresses) == 0 {
			continue
		}
		all = append(all, checkup.Named{Name: k.name, Check: checkup.Func(k.f)})
	}
	return all
}
