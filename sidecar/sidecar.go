package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/version"
	"github.com/weirproxy/weir/sidecar/agent"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz"
	"github.com/weirproxy/weir/sidecar/match"
)

// Sidecar is one run of the program. Run it once.
type Sidecar struct {
	config Config
	log    *zap.Logger
	admin  *admin.Server
	agent  *agent.Agent
	server extauthz.Server
}

// New makes a sidecar that works once Run runs. It fails with all that is wrong with the configuration.
func New(c Config, logger *zap.Logger) (*Sidecar, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	c = c.WithDefaults()
	keys, err := c.keys()
	if err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	s := &Sidecar{config: c, log: logger, admin: admin.New(c.Admin, logger.Named("admin"))}
	s.agent = agent.New(agent.Config{
		Name: c.Namespace + "/" + c.Pod, Pod: c.pod(), Keys: keys,
		Kafka: c.Kafka, Topics: c.Topics, StateFile: c.statePath(),
		MaxCounters: c.MaxCounters, MaxInFlight: c.MaxInFlight,
		ReadyAfter: c.ReadyAfter, Drain: c.Grace * 3 / 5, Version: version.Short(),
	}, logger.Named("agent"), s.admin.Registry())
	if s.server, err = extauthz.New(c.Server, s.agent.Checker(), s.agent.Metrics(), c.Grace/5); err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	s.admin.Ready("sidecar", func() (bool, []string) {
		state := s.agent.State()
		return state.Started && state.Ready, state.Texts()
	})
	registerDebug(s.admin, s.agent)
	return s, nil
}

// pod is who the pod is to policies. Targets given by hand are the pod's own where nothing else says
// what it is, and as many as a pod may have; they may be named in any case.
func (c Config) pod() match.Pod {
	p := match.Pod{Namespace: c.Namespace, OwnerKind: c.OwnerKind, OwnerName: c.OwnerName, Labels: c.Labels}
	if c.OwnerKind == "" && len(c.Labels) == 0 && len(c.Targets) <= match.MaxPodTargets {
		p.Targets = c.Targets
	} else {
		p.Named = c.Targets
	}
	return p
}

// Checker answers requests without a server, for programs that hold a sidecar.
func (s *Sidecar) Checker() *check.Checker { return s.agent.Checker() }

// State is what /readyz says.
func (s *Sidecar) State() agent.State { return s.agent.State() }

// Run works until ctx ends or the server cannot go on. It returns within Config.Grace after that.
func (s *Sidecar) Run(ctx context.Context) error {
	s.agent.Restore()
	l, err := listen.Listen(s.config.Listen, 0)
	if err != nil {
		return err
	}
	s.log.Info("checks are answered", zap.String(log.Address, l.Addr().String()), zap.String(log.Server, string(s.config.Server)), zap.String(log.Pod, s.config.Namespace+"/"+s.config.Pod))
	s.agent.SetStarted(true)

	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	aside, stopAside := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAside()

	var others sync.WaitGroup
	var adminErr error
	others.Go(func() {
		if adminErr = s.admin.Run(aside); adminErr != nil {
			stopServing()
		}
	})
	others.Go(func() { s.tellHealth(serving) })
	agentEnded := make(chan error, 1)
	go func() { agentEnded <- s.agent.Run(working) }()

	serveErr := s.serve(serving, l)
	s.agent.SetStarted(false) // /readyz is asked until the end, and nobody would be answered
	stopServing()
	stopWorking() // no check can charge any more: what is left is the last
	agentErr := <-agentEnded
	stopAside()
	others.Wait()
	return errors.Join(serveErr, adminErr, agentErr)
}

func (s *Sidecar) serve(ctx context.Context, l net.Listener) error {
	defer func() { _ = l.Close() }()
	return s.server.Serve(ctx, l)
}

// tellHealth keeps the gRPC health service at what /readyz says.
func (s *Sidecar) tellHealth(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s.server.SetServing(s.agent.State().Ready)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
