package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

// restartAfter stands for the delay of a node, which doubles from 10 s on.
const restartAfter = time.Second

// container is one that really runs. Its fields but process are its pod's goroutine's, those above mu fixed.
type container struct {
	spec   *corev1.Container
	binary string
	args   []string
	env    []string
	flags  []string
	mounts mounts
	// forever: it is started again whenever it ends. onFailure: only when it failed.
	forever, onFailure, native, init bool

	mu      sync.Mutex
	process *parts.Process

	started, ready bool
	restarts       int32
	ended          time.Time // when it was seen to have ended; zero: it runs
	checks         [3]check  // by the probes' order: startup, readiness, liveness
}

// check is the state of one probe.
type check struct {
	due                 time.Time
	failures, successes int32
}

// newContainer works out what a container runs. Its volumes are made.
func (k *Kubelet) newContainer(ctx context.Context, p *corev1.Pod, spec *corev1.Container, v *volumes) (*container, error) {
	program := k.program(spec)
	c := &container{
		spec: spec, binary: k.binaries[program], native: cluster.Native(spec),
		onFailure: p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure,
	}
	c.init = slices.ContainsFunc(p.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == spec.Name })
	c.forever = c.native || !c.init && p.Spec.RestartPolicy == corev1.RestartPolicyAlways
	c.onFailure = c.onFailure || c.init && p.Spec.RestartPolicy == corev1.RestartPolicyAlways
	var err error
	if c.mounts, err = v.mount(ctx, spec); err != nil {
		return nil, err
	}
	values, err := v.environment(ctx, spec)
	if err != nil {
		return nil, err
	}
	if k.options.Flags != nil {
		c.flags = k.options.Flags(p, program)
	}
	if program == "weir-sidecar" {
		own, err := sidecarFlags(spec.Args)
		if err != nil {
			return nil, err
		}
		c.flags = append(own, c.flags...)
	}
	for _, e := range values {
		c.env = append(c.env, e.name+"="+c.mounts.replace(e.value))
	}
	words := append(slices.Clone(spec.Command[min(1, len(spec.Command)):]), spec.Args...)
	for _, arg := range words {
		c.args = append(c.args, c.mounts.replace(expand(arg, values)))
	}
	c.args = append(c.args, c.flags...)
	return c, nil
}

// sidecarFlags are addresses of its own for one of many sidecars on a machine: its admin server's, which
// is on loopback always, and its metrics' where the spec has them elsewhere.
func sidecarFlags(args []string) ([]string, error) {
	names := []string{"--admin-address"}
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--admin-metrics-address=") }) {
		names = append(names, "--admin-metrics-address")
	}
	var out []string
	for _, name := range names {
		port, err := parts.FreePort()
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%s=tcp://127.0.0.1:%d", name, port))
	}
	return out, nil
}

// bringUp starts the container and waits for what those behind it wait for: its postStart hook, a native
// sidecar's start-up probe, an init container's end.
func (c *container) bringUp(ctx context.Context, t parts.T) error {
	switch {
	case c.process == nil:
		c.start(t)
		if hooks := c.spec.Lifecycle; hooks != nil && hooks.PostStart != nil {
			if err := c.hook(ctx, hooks.PostStart, time.Now().Add(2*time.Minute)); err != nil {
				c.process.Kill()
				return fmt.Errorf("postStart: %w", err)
			}
		}
	case c.step(ctx, t) && !c.native && c.init:
		return nil
	}
	if c.native && !c.started || !c.native && c.init {
		return errors.New("not started yet")
	}
	return nil
}

func (c *container) start(t parts.T) {
	cmd := exec.Command(c.binary, c.args...)
	cmd.Env = append([]string{}, c.env...) // of this machine's nothing
	process := parts.Start(t, c.spec.Name, cmd)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process = process
	c.started, c.ready, c.ended = false, false, time.Time{}
	now := time.Now()
	for i, p := range c.probes() {
		c.checks[i] = check{}
		if p != nil {
			c.checks[i].due = now.Add(time.Duration(p.InitialDelaySeconds) * time.Second)
		}
	}
}

func (c *container) probes() [3]*corev1.Probe {
	return [3]*corev1.Probe{c.spec.StartupProbe, c.spec.ReadinessProbe, c.spec.LivenessProbe}
}

// step starts the container again where that is due, and probes it. It returns true when it has ended for
// good.
func (c *container) step(ctx context.Context, t parts.T) (done bool) {
	select {
	case <-c.process.Done():
		return c.again(t)
	default:
	}
	if !c.started {
		c.started = c.probe(ctx, 0)
	}
	if c.started {
		c.ready = c.probe(ctx, 1)
		c.probe(ctx, 2)
	}
	return false
}

// again is step after the process has ended.
func (c *container) again(t parts.T) (done bool) {
	c.started, c.ready = false, false
	if !c.forever && (!c.onFailure || c.process.ExitCode() == 0) {
		return true
	}
	if c.ended.IsZero() {
		c.ended = time.Now()
	}
	if time.Since(c.ended) >= restartAfter {
		c.start(t)
		c.restarts++
	}
	return false
}

// probe runs a probe if it is due, and returns whether the container is in its good graces. One whose
// start-up or liveness probe has failed too often is killed.
func (c *container) probe(ctx context.Context, which int) bool {
	p, k := c.probes()[which], &c.checks[which]
	good := which == 1 && c.ready
	if p == nil {
		return true
	}
	now := time.Now()
	if now.Before(k.due) {
		return good
	}
	k.due = now.Add(time.Duration(max(1, p.PeriodSeconds)) * time.Second)
	if err := c.exec(ctx, p.Exec, now.Add(time.Duration(max(1, p.TimeoutSeconds))*time.Second)); err == nil {
		k.successes, k.failures = k.successes+1, 0
		return good || k.successes >= max(1, p.SuccessThreshold)
	}
	k.successes, k.failures = 0, k.failures+1
	if k.failures < max(1, p.FailureThreshold) {
		return good
	}
	if which != 1 {
		c.process.Kill()
	}
	return false
}

func (c *container) hook(ctx context.Context, h *corev1.LifecycleHandler, until time.Time) error {
	return c.exec(ctx, h.Exec, until)
}

// exec runs a command in the container: of its own program.
func (c *container) exec(ctx context.Context, action *corev1.ExecAction, until time.Time) error {
	if action == nil || len(action.Command) == 0 || path.Base(action.Command[0]) != path.Base(c.binary) {
		return fmt.Errorf("%v: only commands of %s are run", action, path.Base(c.binary))
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var args []string
	for _, a := range action.Command[1:] {
		args = append(args, c.mounts.replace(a))
	}
	cmd := exec.CommandContext(ctx, c.binary, append(args, c.flags...)...)
	cmd.Env = append([]string{}, c.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", action.Command, err, tail(string(out)))
	}
	return nil
}

// end ends the container: preStop, SIGTERM, and at the deadline SIGKILL.
func (c *container) end(ctx context.Context, deadline time.Time) {
	if c.process == nil {
		return
	}
	if hooks := c.spec.Lifecycle; hooks != nil && hooks.PreStop != nil {
		_ = c.hook(ctx, hooks.PreStop, deadline) // one that fails does not keep a pod
	}
	if c.process.Terminate() != nil {
		return
	}
	select {
	case <-c.process.Done():
	case <-ctx.Done():
	case <-time.After(time.Until(deadline)):
	}
	c.process.Kill()
}
