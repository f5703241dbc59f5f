package kubelet

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

// tick is how often a pod is looked at.
const tick = 100 * time.Millisecond

// programs are those that containers really run.
var programs = []string{"weir", "weir-aggregator", "weir-controller", "weir-sidecar"}

// Options of a kubelet; the zero value is enough for sidecars.
type Options struct {
	// Flags are further arguments of a pod's program, whatever its command: its run, its probes and its
	// hooks. They hold over the spec's. nil: none. It is called on goroutines of the kubelet's.
	Flags func(p *corev1.Pod, program string) []string
}

// Kubelet runs pods. It is safe for concurrent use, but for methods that take a testing.TB.
type Kubelet struct {
	cluster  *cluster.Cluster
	node     string
	binaries map[string]string // by program
	options  Options

	mu   sync.Mutex
	pods map[types.UID]*runner
	done sync.WaitGroup
}

// Start adds a node to the cluster, binds every pod to it and runs it, until the test ends. Then all that
// still runs is killed; what it wrote is logged if the test failed.
func Start(t testing.TB, c *cluster.Cluster, node string, o Options) *Kubelet {
	t.Helper()
	k := &Kubelet{cluster: c, node: node, options: o, binaries: make(map[string]string), pods: make(map[types.UID]*runner)}
	for _, name := range programs {
		k.binaries[name] = parts.Command(t, name).Path
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		k.logFailed(t)
	})
	c.PlayNode(t, node, func(p *corev1.Pod) bool { return !k.runs(p) })
	return k
}

// run starts a goroutine for each pod that it sees, and returns when all of these have ended.
func (k *Kubelet) run(ctx context.Context) {
	defer k.done.Wait()
	for ctx.Err() == nil {
		var pods corev1.PodList
		if err := k.cluster.Client.List(ctx, &pods); err == nil {
			k.see(ctx, pods.Items)
		}
		select {
		case <-ctx.Done():
		case <-time.After(tick):
		}
	}
}

func (k *Kubelet) see(ctx context.Context, pods []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := make(map[types.UID]bool)
	for i := range pods {
		p := &pods[i]
		seen[p.UID] = true
		r := k.pods[p.UID]
		if r == nil {
			if p.Spec.NodeName != k.node || !k.runs(p) {
				continue
			}
			r = &runner{kubelet: k}
			r.latest.Store(p)
			k.pods[p.UID] = r
			k.done.Go(func() { r.run(ctx) })
		}
		r.latest.Store(p)
	}
	for uid, r := range k.pods {
		if !seen[uid] {
			r.gone.Store(true)
		}
	}
}

// runs reports whether a container of the pod is of weir's programs.
func (k *Kubelet) runs(p *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if k.program(&list[i]) != "" {
				return true
			}
		}
	}
	return false
}

// program is which of weir's programs a container runs: by its command, or by the name of its image. "":
// none.
func (k *Kubelet) program(c *corev1.Container) string {
	name := path.Base(c.Image)
	if len(c.Command) > 0 {
		name = path.Base(c.Command[0])
	} else if end := strings.IndexAny(name, ":@"); end >= 0 {
		name = name[:end]
	}
	if k.binaries[name] == "" {
		return ""
	}
	return name
}

// find returns a pod that was seen.
func (k *Kubelet) find(namespace, name string) *runner {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if p := r.latest.Load(); p.Namespace == namespace && p.Name == name && !r.gone.Load() {
			return r
		}
	}
	return nil
}

// Path is where a file of a container is on this machine. The container's volumes are there once the pod
// runs.
func (k *Kubelet) Path(t testing.TB, p *corev1.Pod, container, file string) string {
	t.Helper()
	c := k.container(t, p, container)
	out := c.mounts.replace(file)
	if out == file {
		t.Fatalf("%s/%s: %s is in no volume of container %s", p.Namespace, p.Name, file, container)
	}
	return out
}

// Process is the newest process of a container, which may have ended, to freeze or to kill.
func (k *Kubelet) Process(t testing.TB, p *corev1.Pod, container string) *parts.Process {
	t.Helper()
	c := k.container(t, p, container)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		t.Fatalf("%s/%s: container %s has not started", p.Namespace, p.Name, container)
	}
	return c.process
}

// Flag is the value that a container's program was given for a flag, such as --admin-address. The last one
// holds; "": none.
func (k *Kubelet) Flag(t testing.TB, p *corev1.Pod, container, flag string) (value string) {
	t.Helper()
	for _, arg := range k.container(t, p, container).args {
		if v, is := strings.CutPrefix(arg, flag+"="); is {
			value = v
		}
	}
	return value
}

// Waits is why a pod does not start: what it mounts is not there, or what it waits for. nil: it runs, or
// was not seen yet.
func (k *Kubelet) Waits(p *corev1.Pod) error {
	r := k.find(p.Namespace, p.Name)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits
}

func (k *Kubelet) container(t testing.TB, p *corev1.Pod, name string) *container {
	t.Helper()
	var found *container
	parts.Eventually(t, time.Minute, fmt.Sprintf("container %s of %s/%s prepared", name, p.Namespace, p.Name), func() error {
		r := k.find(p.Namespace, p.Name)
		if r == nil {
			return fmt.Errorf("the pod was not seen on node %s, or runs nothing of weir's", k.node)
		}
		var err error
		found, err = r.container(name)
		return err
	})
	return found
}

func (k *Kubelet) logFailed(t testing.TB) {
	if !t.Failed() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		r.log(t)
	}
}
