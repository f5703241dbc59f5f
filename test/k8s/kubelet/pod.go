package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

// runner runs one pod, on a goroutine of its own.
type runner struct {
	kubelet *Kubelet
	latest  atomic.Pointer[corev1.Pod]
	gone    atomic.Bool // its object is

	mu         sync.Mutex
	containers []*container // those that really run, in order
	waits      error        // why the pod does not start
}

var errEnding = errors.New("the pod is deleted")

// run runs the pod until it has ended or ctx is done.
func (r *runner) run(ctx context.Context) {
	_ = parts.Run(func(t parts.T) { // its processes end with it
		dir, err := os.MkdirTemp("", "weir-") // short: a socket's path may have 107 bytes
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := r.start(ctx, t, dir); err != nil && !errors.Is(err, errEnding) {
			return
		}
		for done := false; r.live(ctx); pause(ctx) {
			done = done || r.step(ctx, t)
		}
		r.end(ctx)
	})
}

// live reports whether the pod is to run on.
func (r *runner) live(ctx context.Context) bool {
	return ctx.Err() == nil && !r.gone.Load() && r.latest.Load().DeletionTimestamp == nil
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(tick):
	}
}

// start prepares volumes and brings up containers in order: each waits for those before it, as its kind has
// it. It goes on until the pod is deleted.
func (r *runner) start(ctx context.Context, t parts.T, dir string) error {
	if err := r.retry(ctx, func() error { return r.prepare(ctx, dir) }); err != nil {
		return err
	}
	for _, c := range r.containers {
		if err := r.retry(ctx, func() error { return c.bringUp(ctx, t) }); err != nil {
			return err
		}
	}
	return nil
}

// retry calls f until it succeeds, and keeps its error meanwhile.
func (r *runner) retry(ctx context.Context, f func() error) error {
	for r.live(ctx) {
		err := f()
		r.mu.Lock()
		r.waits = err
		r.mu.Unlock()
		if err == nil {
			return nil
		}
		pause(ctx)
	}
	return errEnding
}

// prepare makes the volumes and works out what to run.
func (r *runner) prepare(ctx context.Context, dir string) error {
	p := r.latest.Load()
	v := &volumes{client: r.kubelet.cluster.Client, pod: p, dir: dir}
	var out []*container
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if r.kubelet.program(&list[i]) == "" {
				continue
			}
			c, err := r.kubelet.newContainer(ctx, p, &list[i], v)
			if err != nil {
				return fmt.Errorf("container %s: %w", list[i].Name, err)
			}
			out = append(out, c)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers = out
	return nil
}

// step looks at every container and writes the pod's status where it changed. It returns true once the
// pod has done all that it had to do, and has been said to.
func (r *runner) step(ctx context.Context, t parts.T) (done bool) {
	done = true
	for _, c := range r.containers {
		done = c.step(ctx, t) && done
	}
	p := r.latest.Load()
	if done && p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return r.finished(ctx, p)
	}
	_ = r.report(ctx, p) // tried again with the next step
	return false
}

// report writes the pod's status, if it is not as it should be.
func (r *runner) report(ctx context.Context, p *corev1.Pod) error {
	if !r.outdated(p) {
		return nil
	}
	return r.kubelet.cluster.SetRunning(ctx, p.DeepCopy(), r.state) // readers have p
}

func (r *runner) outdated(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodRunning {
		return true
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			s := &list[i]
			if is := r.state(s.Name); s.State.Running != nil && (is.Ready != s.Ready || is.Restarts != s.RestartCount) {
				return true
			}
		}
	}
	return false
}

// state is a container's; one that does not really run is ready.
func (r *runner) state(name string) cluster.Container {
	for _, c := range r.containers {
		if c.spec.Name == name {
			return cluster.Container{Ready: c.ready, Restarts: c.restarts}
		}
	}
	return cluster.Container{Ready: true}
}

// finished says of a pod that ran to its end how that was.
func (r *runner) finished(ctx context.Context, p *corev1.Pod) bool {
	p = p.DeepCopy()
	before := client.MergeFrom(p.DeepCopy())
	p.Status.Phase = corev1.PodSucceeded
	for _, c := range r.containers {
		if c.process.ExitCode() != 0 {
			p.Status.Phase = corev1.PodFailed
		}
	}
	return r.kubelet.cluster.Client.Status().Patch(ctx, p, before) == nil
}

// end ends the pod's containers as a node does, native sidecars last and in reverse, and its object.
func (r *runner) end(ctx context.Context) {
	p := r.latest.Load()
	if ctx.Err() != nil || r.gone.Load() {
		return // the processes are killed
	}
	grace := 30 * time.Second
	if s := p.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	deadline := time.Now().Add(grace)
	for i := len(r.containers) - 1; i >= 0; i-- {
		r.containers[i].end(ctx, deadline)
	}
	for ctx.Err() == nil && !r.gone.Load() {
		if err := r.kubelet.cluster.Finish(ctx, p); err == nil {
			return
		}
		pause(ctx)
	}
}

func (r *runner) container(name string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.spec.Name == name {
			return c, nil
		}
	}
	if r.waits != nil {
		return nil, r.waits
	}
	return nil, fmt.Errorf("no container %s that runs a program of weir's", name)
}

// log logs what the pod's programs wrote.
func (r *runner) log(t testing.TB) {
	p := r.latest.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits != nil {
		t.Logf("pod %s/%s: %v", p.Namespace, p.Name, r.waits)
	}
	for _, c := range r.containers {
		c.mu.Lock()
		if c.process != nil {
			t.Logf("pod %s/%s, container %s, last output:\n%s", p.Namespace, p.Name, c.spec.Name, tail(c.process.Output()))
		}
		c.mu.Unlock()
	}
}

// tail is the end of a text.
func tail(s string) string { return s[max(0, len(s)-16<<10):] }
