package load

import (
	"errors"
	"fmt"
	"time"
)

// Source is one stream of requests. Several may have the same name: they are
// counted together, which makes a stream that is spread unevenly over pods.
type Source struct {
	Name string
	// Rate is of the source as a whole, not a pod's.
	Rate Rate
	// Poisson makes arrivals random, as of many independent callers; otherwise
	// they are evenly spaced.
	Poisson bool
	// Request is sent again and again, unless Make gives the k-th one, k from
	// 0: a flood of keys, a mix of paths. Make is called on one goroutine.
	Request Request
	Make    func(k int) *Request
	// Pods names those that it is sent to, in turn; empty for all.
	Pods []string
}

// Pod is one replica: an Envoy with its sidecar, or a sidecar.
type Pod struct {
	Name   string
	Target Target
}

// Config says what to send, and where.
type Config struct {
	Pods    []Pod
	Sources []Source
	// For is how long requests become due; 0 until Stop.
	For time.Duration
	// Outstanding is how many requests may be under way to a pod, 64 by default.
	Outstanding int
	// Timeout is how long one request may take, 5 s by default.
	Timeout time.Duration
	// Seed makes Poisson arrivals repeatable.
	Seed uint64
}

func (c Config) withDefaults() Config {
	if c.Outstanding == 0 {
		c.Outstanding = 64
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

func (c Config) validate() error {
	if len(c.Pods) == 0 {
		return errors.New("load: no pods")
	}
	known := map[string]bool{}
	for _, p := range c.Pods {
		if known[p.Name] {
			return fmt.Errorf("load: two pods are named %q", p.Name)
		}
		known[p.Name] = true
	}
	for _, s := range c.Sources {
		if s.Rate == nil {
			return fmt.Errorf("load: source %q has no rate", s.Name)
		}
		for _, pod := range s.Pods {
			if !known[pod] {
				return fmt.Errorf("load: source %q names pod %q, which is none", s.Name, pod)
			}
		}
	}
	return nil
}
