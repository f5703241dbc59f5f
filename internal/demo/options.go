package demo

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options are what `weir demo` is told. Out and Err are required; the zero value of the rest is the demo as
// a newcomer runs it, until its context ends.
type Options struct {
	// Pods to run; 0: 3.
	Pods int
	// Load in requests/s over all pods; 0: three times what the limit gives out.
	Load float64
	// For how long the load runs; 0: until the context ends.
	For time.Duration
	// JSON prints the result as one JSON object on Out, and everything else on Err.
	JSON bool
	// NoEnvoy asks the sidecars directly. Envoy names its binary; empty: .tools/bin/envoy or the PATH's.
	NoEnvoy bool
	Envoy   string
	// Policy is a file; empty: the demo's own.
	Policy string
	// Kafka (host:port of a broker) and Redis (host:port) to use; empty: embedded ones.
	Kafka, Redis string
	// Method, Path and Headers are the load's request; empty: GET / as x-api-key: demo.
	Method, Path string
	Headers      map[string]string
	// Verbose writes the programs' logs to Err.
	Verbose bool

	Out, Err io.Writer
	// Terminal: Out is one, and the table is drawn in place.
	Terminal bool
}

// MaxPods bounds the demo to what one machine carries.
const MaxPods = 16

func (o Options) withDefaults() Options {
	if o.Pods == 0 {
		o.Pods = 3
	}
	if o.Method == "" {
		o.Method = "GET"
	}
	if o.Path == "" {
		o.Path = "/"
	}
	if o.Headers == nil {
		o.Headers = map[string]string{"x-api-key": "demo"}
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Pods < 1 || o.Pods > MaxPods {
		errs = append(errs, fmt.Errorf("--pods %d: 1 to %d", o.Pods, MaxPods))
	}
	if o.Load < 0 || o.Load > 100_000 {
		errs = append(errs, fmt.Errorf("--load %g: up to 100000 requests/s", o.Load))
	}
	if o.For < 0 {
		errs = append(errs, fmt.Errorf("--for %s: a time from now on", o.For))
	}
	if o.NoEnvoy && o.Envoy != "" {
		errs = append(errs, errors.New("--envoy and --no-envoy: give one of them"))
	}
	return errors.Join(errs...)
}
