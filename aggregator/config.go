package aggregator

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weirproxy/weir/aggregator/ingest"
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/identitykey"
)

// Handover says what becomes of the partitions when the program is asked to end.
type Handover string

// The handovers; "" is Leave.
const (
	// Leave passes the partitions on at once.
	Leave Handover = "Leave"
	// Stay keeps them for a restart within the session time-out.
	Stay Handover = "Stay"
)

// Config is what an aggregator is told. The zero value of each field that is not required stands for
// its default.
type Config struct {
	// Instance names this process among the installation's aggregators, the same after a restart.
	// Default: the host's name.
	Instance string
	// Group is the consumer group. Default: weir-aggregator.
	Group    string
	Handover Handover
	// Policies is a directory of policy files to publish; empty: none.
	Policies string
	// IdentityKeyFile holds the installation's identity key, 32 bytes. Required unless IdentityKey is set.
	IdentityKeyFile string
	IdentityKey     []byte
	// Flush and Tick are the fleet's periods. Defaults: 50 and 25 ms.
	Flush, Tick time.Duration
	// MaxCountersPerTarget. Default: 200,000.
	MaxCountersPerTarget int
	Kafka                bus.Config
	Topics               bus.Topics
	Redis                store.Config
	// Store, if set, is used instead of Redis.
	Store ingest.Store
	// Admin is the program's own HTTP server; the zero value: none.
	Admin admin.Config
	// Session of the consumer group. Default: 6 s.
	Session time.Duration
	// Grace bounds what Run does after its context has ended. Default: 5 s.
	Grace time.Duration
}

// WithDefaults returns c with every unset value at its default.
func (c Config) WithDefaults() Config {
	if c.Instance == "" {
		c.Instance, _ = os.Hostname()
	}
	def(&c.Group, "weir-aggregator")
	def(&c.Handover, Leave)
	def(&c.Flush, 50*time.Millisecond)
	def(&c.Tick, 25*time.Millisecond)
	def(&c.MaxCountersPerTarget, 200_000)
	def(&c.Session, 6*time.Second)
	def(&c.Grace, 5*time.Second)
	c.Kafka = c.Kafka.WithDefaults()
	c.Topics = c.Topics.WithDefaults()
	return c
}

func def[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

// Validate returns all that is wrong with c, joined.
func (c Config) Validate() error {
	c = c.WithDefaults()
	errs := []error{c.Kafka.Validate(), c.Topics.Validate()}
	if c.Store == nil {
		errs = append(errs, c.Redis.Validate())
	}
	if c.Instance == "" || strings.ContainsAny(c.Instance, " /") {
		errs = append(errs, fmt.Errorf("instance: %q; give a name without spaces or slashes, another for each aggregator", c.Instance))
	}
	if c.Handover != Leave && c.Handover != Stay {
		errs = append(errs, fmt.Errorf("handover: %q is neither %s nor %s", c.Handover, Leave, Stay))
	}
	for field, v := range map[string]struct{ value, least, most time.Duration }{
		"flush": {c.Flush, 10 * time.Millisecond, time.Second}, "tick": {c.Tick, 5 * time.Millisecond, time.Second},
		"session": {c.Session, time.Second, time.Minute},
	} {
		if v.value < v.least || v.value > v.most {
			errs = append(errs, fmt.Errorf("%s: %v is outside %v to %v", field, v.value, v.least, v.most))
		}
	}
	if c.MaxCountersPerTarget < 1 {
		errs = append(errs, fmt.Errorf("maxCountersPerTarget: %d, at least 1", c.MaxCountersPerTarget))
	}
	if len(c.IdentityKey) == 0 && c.IdentityKeyFile == "" {
		errs = append(errs, errors.New("identityKeyFile: is missing; `weir key` makes a key, and every program of the installation has the same"))
	}
	return errors.Join(errs...)
}

func (c Config) keys() (wirev1.Keys, error) {
	if len(c.IdentityKey) > 0 {
		return wirev1.NewKeys(c.IdentityKey)
	}
	return identitykey.Read(c.IdentityKeyFile)
}
