package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// lookEvery is how often a played node looks for pods.
	lookEvery = 100 * time.Millisecond
	hostIP    = "10.255.0.1"
)

// AddNode creates a ready Node with room for every pod.
func (c *Cluster) AddNode(t testing.TB, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("200"),
	}
	node.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
	}
	if err := c.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// PlayNode adds a node and plays scheduler and kubelet for it until the test ends: every pod is bound to
// it; one that owns picks (nil: all) is said to run and to be ready, and is gone at once when deleted. The
// others are for the test to run.
func (c *Cluster) PlayNode(t testing.TB, name string, owns func(*corev1.Pod) bool) {
	t.Helper()
	c.AddNode(t, name)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = c.playOnce(ctx, name, owns) // what failed is tried again: objects change below it
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

func (c *Cluster) playOnce(ctx context.Context, node string, owns func(*corev1.Pod) bool) error {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods); err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
			if err := c.Bind(ctx, p, node); err != nil {
				return fmt.Errorf("bind %s/%s: %w", p.Namespace, p.Name, err)
			}
		}
		if owns != nil && !owns(p) {
			continue
		}
		if err := c.advance(ctx, p); err != nil {
			return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

// advance takes a pod one step on: from its start to ready, from its deletion to its end.
func (c *Cluster) advance(ctx context.Context, p *corev1.Pod) error {
	switch {
	case p.DeletionTimestamp != nil:
		return c.Finish(ctx, p)
	case p.Status.Phase == corev1.PodPending || p.Status.Phase == "":
		return c.SetReady(ctx, p, true)
	default:
		return nil
	}
}

// Bind is what a scheduler does.
func (c *Cluster) Bind(ctx context.Context, p *corev1.Pod, node string) error {
	return c.Client.SubResource("binding").Create(ctx, p, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

// SetReady says of a pod that its containers run, and whether they are ready. An address is given to it
// once. Only its status is written.
func (c *Cluster) SetReady(ctx context.Context, p *corev1.Pod, ready bool) error {
	return c.SetRunning(ctx, p, func(string) Container { return Container{Ready: ready} })
}

// Container is how a running container is.
type Container struct {
	Ready    bool
	Restarts int32
}

// SetRunning is SetReady with each container's own state. The pod is ready when all of them are; init
// containers that are no native sidecars are done.
func (c *Cluster) SetRunning(ctx context.Context, p *corev1.Pod, state func(name string) Container) error {
	before := client.MergeFrom(p.DeepCopy())
	s := &p.Status
	s.Phase = corev1.PodRunning
	c.setAddress(p)
	if s.StartTime == nil {
		now := metav1.Now()
		s.StartTime = &now
	}
	s.InitContainerStatuses = initStatuses(p.Spec.InitContainers, *s.StartTime, state)
	s.ContainerStatuses = statuses(p.Spec.Containers, *s.StartTime, state)
	s.Conditions = conditions(s.Conditions, allReady(s.InitContainerStatuses) && allReady(s.ContainerStatuses))
	return c.Client.Status().Patch(ctx, p, before)
}

// setAddress gives a pod its address, always the same one.
func (c *Cluster) setAddress(p *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ip := c.addresses[p.UID]
	if ip == "" {
		n := len(c.addresses)
		ip = fmt.Sprintf("10.244.%d.%d", n/250, n%250+1) // nobody listens there
		c.addresses[p.UID] = ip
	}
	s := &p.Status
	s.PodIP, s.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	s.HostIP, s.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
}

// Finish is how a kubelet ends a pod that is deleted: its object goes.
func (c *Cluster) Finish(ctx context.Context, p *corev1.Pod) error {
	return client.IgnoreNotFound(c.Client.Delete(ctx, p, client.GracePeriodSeconds(0)))
}

// conditions keeps the times of those that do not change.
func conditions(old []corev1.PodCondition, ready bool) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status := corev1.ConditionTrue
		if (kind == corev1.ContainersReady || kind == corev1.PodReady) && !ready {
			status = corev1.ConditionFalse
		}
		out = append(out, condition(old, kind, status))
	}
	return out
}

func condition(old []corev1.PodCondition, kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
	for _, c := range old {
		if c.Type == kind && c.Status == status {
			return c
		}
	}
	return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()}
}

func allReady(all []corev1.ContainerStatus) bool {
	for i := range all {
		if !all[i].Ready {
			return false
		}
	}
	return true
}

func statuses(containers []corev1.Container, since metav1.Time, state func(string) Container) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range containers {
		s := status(&containers[i], corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}})
		is := state(s.Name)
		s.Ready, s.RestartCount = is.Ready, is.Restarts
		out = append(out, s)
	}
	return out
}

// initStatuses: a native sidecar runs, any other init container is done.
func initStatuses(containers []corev1.Container, since metav1.Time, state func(string) Container) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range containers {
		if Native(&containers[i]) {
			out = append(out, statuses(containers[i:i+1], since, state)...)
			continue
		}
		s := status(&containers[i], corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: since, FinishedAt: since},
		})
		s.Ready = true
		out = append(out, s)
	}
	return out
}

// Native reports whether an init container is a native sidecar, which runs as long as its pod.
func Native(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func status(c *corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Started: &started}
}
