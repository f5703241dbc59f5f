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
	// Version is this program's.
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

// All are the checks by name.
func (c *Checks) All() []checkup.Named {
	named := func(name string, f func(context.Context) []checkup.Finding) checkup.Named {
		return checkup.Named{Name: name, Check: checkup.Func(f)}
	}
	return []checkup.Named{
		named("kafka.reachable", c.reachable),
		named("kafka.topics", c.topics),
		named("kafka.installation", c.installation),
		named("redis.reachable", c.redisReachable),
		named("redis.settings", c.redisSettings),
		named("retention", c.retention),
		named("owners", c.owners),
		named("sidecars.live", c.sidecars),
		named("sidecars.versions", c.versions),
		named("sidecars.policies", c.withoutPolicy),
		named("policies.valid", c.valid),
		named("policies.in-force", c.inForce),
	}
}
