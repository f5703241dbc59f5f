package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/changes"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
	"github.com/weirproxy/weir/controller/status"
	"github.com/weirproxy/weir/internal/policy"
)

// Topic is what the loop needs of the policy topic.
type Topic interface {
	Publish(ctx context.Context, d publish.Desired) (publish.Published, error)
	Delete(ctx context.Context, n types.NamespacedName) error
	Lookup(n types.NamespacedName) publish.Published
	Orphans(exists func(types.NamespacedName) bool) []types.NamespacedName
	Changes() *changes.Set
}

// Fleet is what the loop needs to know of sidecars.
type Fleet interface {
	Report(pod, run string, policy types.NamespacedName) (fleet.Report, bool)
	Naming(target string) []string
	Waiting() string
	Changes() *changes.Set
}

// Policies is the loop's body. It is safe for concurrent use on different policies.
type Policies struct {
	client   client.Client
	topic    Topic
	fleet    Fleet
	status   func(status.Facts, kube.QuotaPolicyStatus, time.Time) kube.QuotaPolicyStatus
	now      func() time.Time
	events   events.EventRecorder
	watched  func(namespace string) bool
	resolver resolver
	leads    func() bool
	began    time.Time // of the process
	made     made
}

// Rights: policies are read, their status alone is written; targets and pods are read.
//
// +kubebuilder:rbac:groups=weirproxy.dev,resources=quotapolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=weirproxy.dev,resources=quotapolicies/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways;httproutes;grpcroutes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile implements reconcile.Reconciler. What is away is no error but a reason in the status, and is tried
// again a little later.
func (r *Policies) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p, err := r.get(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p == nil {
		return r.end(ctx, req.NamespacedName)
	}
	cold := r.cold()
	if cold > 0 && r.topic.Lookup(req.NamespacedName).Unread {
		return reconcile.Result{RequeueAfter: cold}, nil
	}
	targets, err := r.resolver.targets(ctx, p)
	if err != nil {
		return reconcile.Result{}, err
	}
	f, err := r.bring(ctx, p, targets)
	if err != nil {
		return reconcile.Result{}, err
	}
	if cold > 0 && f.Deaf != "" && f.NotPublished == "" && spoken(p) {
		return reconcile.Result{RequeueAfter: cold}, nil
	}
	err = r.say(ctx, p, r.status(f, p.Status, r.now()))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictAfter}, nil // what was read was old
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return again(f, targets), nil
}

// get returns nil for a policy that is not in force: it is gone, going, or in a namespace that is not watched.
func (r *Policies) get(ctx context.Context, n types.NamespacedName) (*kube.QuotaPolicy, error) {
	if !r.watched(n.Namespace) {
		return nil, nil
	}
	p := &kube.QuotaPolicy{}
	err := r.client.Get(ctx, n, p)
	if apierrors.IsNotFound(err) || err == nil && p.DeletionTimestamp != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return p, nil
}

// cold is how long this process is still young, 0 where it is not: it may not have read the topics, nor heard the
// sidecars, and what it said of a policy then it would take back a moment later. The topics tell when they have.
func (r *Policies) cold() time.Duration { return max(0, coldFor-r.now().Sub(r.began)) }

// spoken reports whether the status is about the generation that the policy has.
func spoken(p *kube.QuotaPolicy) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, kube.ConditionProgrammed)
	return c != nil && c.ObservedGeneration == p.Generation
}

// end takes a policy that is gone out of the topic.
func (r *Policies) end(ctx context.Context, n types.NamespacedName) (reconcile.Result, error) {
	if err := r.topic.Delete(ctx, n); err != nil {
		log.FromContext(ctx).Info("a policy that is gone is still in force; its deletion is tried again", "reason", err.Error())
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	r.made.forget(n)
	return reconcile.Result{}, nil
}

// bring publishes a policy as it is now, if it is valid, and gathers what there is to say of it.
func (r *Policies) bring(ctx context.Context, p *kube.QuotaPolicy, targets []Target) (status.Facts, error) {
	f := status.Facts{Generation: p.Generation, Spec: &p.Spec, Missing: missing(targets), Deaf: r.fleet.Waiting()}
	name := client.ObjectKeyFromObject(p)
	if wrong := policy.Validate(p.Document()); len(wrong) > 0 {
		f.Invalid = wrong.Error()
		if r.made.ofAnother(name, p.UID) {
			f.NotPublished = r.drop(ctx, name)
		}
	} else if _, err := r.topic.Publish(ctx, publish.Desired{
		Document: p.Document(), Generation: p.Generation, Targets: published(targets),
	}); err != nil {
		if ctx.Err() != nil || !r.leads() {
			return f, errors.Join(ctx.Err(), err) // another leads: this status would be about nothing
		}
		f.NotPublished = err.Error()
	} else {
		r.made.note(name, p.UID)
	}
	f.Published = r.topic.Lookup(name)
	var err error
	f.Pods, err = r.pods(ctx, name, targets)
	return f, err
}

// drop takes the record of an object that is gone out of the topic, though another has its name by now, and
// returns why it could not.
func (r *Policies) drop(ctx context.Context, n types.NamespacedName) string {
	if err := r.topic.Delete(ctx, n); err != nil {
		log.FromContext(ctx).Info("a policy that is gone, and has been made again invalid, is still in force; its deletion is tried again", "reason", err.Error())
		return err.Error()
	}
	r.made.forget(n)
	return ""
}

// again is when a policy is to be looked at although nothing tells of a change.
func again(f status.Facts, targets []Target) reconcile.Result {
	if f.NotPublished != "" {
		return reconcile.Result{RequeueAfter: retryAfter}
	}
	for _, t := range targets {
		if t.Missing != "" && t.Named() {
			return reconcile.Result{RequeueAfter: askedAgain} // its kind may be installed
		}
	}
	return reconcile.Result{}
}

// say writes a status that is another than the policy's, by one patch, and an event for each condition that
// turned. The patch fails where the policy has changed since it was read.
func (r *Policies) say(ctx context.Context, p *kube.QuotaPolicy, next kube.QuotaPolicyStatus) error {
	if equality.Semantic.DeepEqual(p.Status, next) {
		return nil
	}
	said := p.DeepCopy()
	said.Status = next
	patch := client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, said, patch); err != nil {
		return err
	}
	for _, c := range turned(p.Status.Conditions, next.Conditions) {
		kind := corev1.EventTypeNormal
		if c.Status != metav1.ConditionTrue && c.Reason != kube.ReasonPending {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(p, nil, kind, c.Reason, c.Type, "%s", note(c.Message))
	}
	return nil
}

// maxNote is what kube-apiserver takes of an event's note, in bytes.
const maxNote = 1024

// note is a message cut to what an event can hold, between two characters; the condition has all of it.
func note(message string) string {
	const more = "…"
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
}

// turned are the conditions of after with another status or reason than before.
func turned(before, after []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range after {
		if was := meta.FindStatusCondition(before, c.Type); was == nil || was.Status != c.Status || was.Reason != c.Reason {
			out = append(out, c)
		}
	}
	return out
}
