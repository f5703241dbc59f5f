package sidecar

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/identitykey"
	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/extauthz"
	"github.com/weirproxy/weir/sidecar/ledger"
)

// Config is what a sidecar is told. The zero value of each field that is not required stands for its
// default.
type Config struct {
	// Listen is where Envoy asks, as package listen reads it. Required.
	Listen string
	// Server is which check server answers. Default: extauthz.Own.
	Server extauthz.Kind
	// Namespace and Pod name this sidecar, "namespace/pod", uniquely in the installation. Required.
	Namespace, Pod string
	// OwnerKind, OwnerName and Labels are the pod's: policies on its owner, or on a Service that
	// selects it, are the pod's own.
	OwnerKind, OwnerName string
	Labels               map[string]string
	// Targets are canonical names, namespace/kind/name: with an owner or labels given they may be named by
	// context_extensions["weir.target"] only; without, up to 8 of them are the pod's own.
	Targets []string
	// IdentityKeyFile holds the installation's identity key, 32 bytes. Required unless IdentityKey is set.
	IdentityKeyFile string
	// IdentityKey is the key itself, for programs that hold it.
	IdentityKey []byte
	// StateDir keeps the last good policies in a file; empty: none is kept.
	StateDir string
	// MaxCounters bounds the counters with a slot of their own. Default: 50,000.
	MaxCounters int
	// MaxInFlight bounds checks under way; beyond it they fail at once, so that Envoy's own failure mode
	// applies. Default: 4,096.
	MaxInFlight int
	// Kafka is how to reach the brokers, Topics the names of the topics.
	Kafka  bus.Config
	Topics bus.Topics
	// Admin is the sidecar's own HTTP server; the zero value: none.
	Admin admin.Config
	// Grace bounds what Run does after its context has ended. Default: 5 s.
	Grace time.Duration
	// ReadyAfter is how long after its start a sidecar is ready (and degraded) without policies or decisions.
	// Default: 10 s.
	ReadyAfter time.Duration
}

const (
	stateFile          = "last-good-policies.json"
	defaultMaxInFlight = 4096
	defaultGrace       = 5 * time.Second
	defaultReadyAfter  = 10 * time.Second
	maxTargets         = 256
)

// WithDefaults returns c with every unset value at its default.
func (c Config) WithDefaults() Config {
	c.Server = orElse(c.Server, extauthz.Own)
	c.MaxCounters = orElse(c.MaxCounters, ledger.DefaultSlots)
	c.MaxInFlight = orElse(c.MaxInFlight, defaultMaxInFlight)
	c.Grace = orElse(c.Grace, defaultGrace)
	c.ReadyAfter = orElse(c.ReadyAfter, defaultReadyAfter)
	c.Kafka = c.Kafka.WithDefaults()
	c.Topics = c.Topics.WithDefaults()
	return c
}

func orElse[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// Validate returns all that is wrong with c, joined.
func (c Config) Validate() error {
	errs := []error{c.Kafka.Validate()}
	if _, err := listen.Parse(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("listen: %w", err))
	}
	if kinds := extauthz.Kinds(); c.Server != "" && !slices.Contains(kinds, c.Server) {
		errs = append(errs, fmt.Errorf("server: %q is none; there are %q", c.Server, kinds))
	}
	if c.Namespace == "" || c.Pod == "" || strings.Contains(c.Namespace+c.Pod, "/") {
		errs = append(errs, fmt.Errorf("pod: namespace %q and name %q: give both, without a slash", c.Namespace, c.Pod))
	}
	if (c.OwnerKind == "") != (c.OwnerName == "") {
		errs = append(errs, errors.New("pod: the owner's kind and name go together, one is missing"))
	}
	if len(c.Targets) > maxTargets {
		errs = append(errs, fmt.Errorf("targets: %d, at most %d", len(c.Targets), maxTargets))
	}
	for _, t := range c.Targets {
		if _, _, _, err := policy.ParseTarget(t); err != nil {
			errs = append(errs, err)
		}
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

func (c Config) statePath() string {
	if c.StateDir == "" {
		return ""
	}
	return filepath.Join(c.StateDir, stateFile)
}
