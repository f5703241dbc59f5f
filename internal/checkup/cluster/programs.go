package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weirproxy/weir/internal/checkup"
)

func deployments() kind  { return of("apps", "v1", "deployments") }
func statefulSets() kind { return of("apps", "v1", "statefulsets") }
func leases() kind       { return of("coordination.k8s.io", "v1", "leases") }

// replicas are how many pods a workload should have, and how many are ready.
type replicas struct {
	want, ready int32
}

func wanted(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// controller is the check kubernetes.controller.
func (c *Checks) controller(ctx context.Context) []checkup.Finding {
	d, err := object[appsv1.Deployment](ctx, c.kubernetes, deployments(), c.cfg.Namespace, controllerName)
	if err != nil && !apierrors.IsNotFound(err) {
		return cannot("get", deployments(), c.cfg.Namespace, err)
	}
	if err != nil {
		return []checkup.Finding{c.missing("Deployment", controllerName)}
	}
	out := judgeReplicas(c.cfg.Namespace, "deployment/"+controllerName, replicas{wanted(d.Spec.Replicas), d.Status.ReadyReplicas})
	l, err := object[coordinationv1.Lease](ctx, c.kubernetes, leases(), c.cfg.Namespace, controllerName)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		out = append(out, judgeLease(l, c.cfg.Namespace, c.cfg.Now())...)
	default:
		out = append(out, cannot("get", leases(), c.cfg.Namespace, err)...)
	}
	return checkup.OrOkay(out, "%d of %d replicas are ready, one leads", d.Status.ReadyReplicas, wanted(d.Spec.Replicas))
}

// missing is the finding that a part of the installation is not there.
func (c *Checks) missing(kind, name string) checkup.Finding {
	return checkup.Fail("install it, or name the installation's namespace with --namespace", "there is no %s %s in namespace %s", kind, name, c.cfg.Namespace)
}

// aggregators is the check kubernetes.aggregators.
func (c *Checks) aggregators(ctx context.Context) []checkup.Finding {
	s, err := object[appsv1.StatefulSet](ctx, c.kubernetes, statefulSets(), c.cfg.Namespace, aggregatorName)
	if err != nil && !apierrors.IsNotFound(err) {
		return cannot("get", statefulSets(), c.cfg.Namespace, err)
	}
	if err != nil {
		return []checkup.Finding{c.missing("StatefulSet", aggregatorName)}
	}
	return checkup.OrOkay(judgeReplicas(c.cfg.Namespace, "statefulset/"+aggregatorName, replicas{wanted(s.Spec.Replicas), s.Status.ReadyReplicas}),
		"%d of %d replicas are ready", s.Status.ReadyReplicas, wanted(s.Spec.Replicas))
}

func judgeReplicas(namespace, workload string, r replicas) []checkup.Finding {
	look := fmt.Sprintf("kubectl -n %s describe %s, and its pods' logs, which say what they wait for", namespace, workload)
	switch {
	case r.want == 0:
		return []checkup.Finding{checkup.Fail("kubectl -n "+namespace+" scale "+workload+" --replicas=2", "%s has no replicas", workload)}
	case r.ready == 0:
		return []checkup.Finding{checkup.Fail(look, "%s: none of %d replicas is ready", workload, r.want)}
	case r.ready < r.want:
		return []checkup.Finding{checkup.Warn(look, "%s: %d of %d replicas are ready", workload, r.ready, r.want)}
	}
	return nil
}

// leaseSlack is added to a lease's duration: this machine's clock and the leader's are not one.
const leaseSlack = time.Minute

var errNobody = errors.New("no controller leads: policies are not published, and no status is written")

// judgeLease: l nil: there is none.
func judgeLease(l *coordinationv1.Lease, namespace string, now time.Time) []checkup.Finding {
	look := "the controllers' logs say why: kubectl -n " + namespace + " logs -l app.kubernetes.io/component=controller --prefix"
	if l == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil {
		return []checkup.Finding{checkup.Fail(look, "%v", errNobody)}
	}
	lasts := 15 * time.Second
	if l.Spec.LeaseDurationSeconds != nil {
		lasts = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	if silent := now.Sub(l.Spec.RenewTime.Time); silent > lasts+leaseSlack {
		return []checkup.Finding{checkup.Fail(look, "%v; %s led until %v ago", errNobody, *l.Spec.HolderIdentity, silent.Round(time.Second))}
	}
	return nil
}

// versions is the check kubernetes.versions.
func (c *Checks) versions(ctx context.Context) []checkup.Finding {
	d, err := object[appsv1.Deployment](ctx, c.kubernetes, deployments(), c.cfg.Namespace, controllerName)
	if apierrors.IsForbidden(err) {
		return cannot("get", deployments(), c.cfg.Namespace, err)
	} else if err != nil {
		return []checkup.Finding{checkup.Skip("", "the Deployment %s could not be read", controllerName)}
	}
	s, err := object[appsv1.StatefulSet](ctx, c.kubernetes, statefulSets(), c.cfg.Namespace, aggregatorName)
	if apierrors.IsForbidden(err) {
		return cannot("get", statefulSets(), c.cfg.Namespace, err)
	} else if err != nil {
		return []checkup.Finding{checkup.Skip("", "the StatefulSet %s could not be read", aggregatorName)}
	}
	return judgeVersions(tag(d.Spec.Template.Spec, controllerName), tag(s.Spec.Template.Spec, aggregatorName), c.cfg.Version)
}

// tag is that of the image of a pod's container of this name, or of its only one; "" where it has none.
func tag(pod corev1.PodSpec, name string) string {
	if i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		return imageTag(pod.Containers[i].Image)
	}
	if len(pod.Containers) == 1 {
		return imageTag(pod.Containers[0].Image)
	}
	return ""
}

func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[i+1:]
	}
	return ""
}

// judgeVersions: own is this program's version, "": not known.
func judgeVersions(controller, aggregator, own string) []checkup.Finding {
	switch {
	case controller == "" || aggregator == "":
		return []checkup.Finding{checkup.Skip("", "the images have no tags (controller %q, aggregators %q) to tell versions by", controller, aggregator)}
	case controller != aggregator:
		return []checkup.Finding{checkup.Warn("helm upgrade, with one version for all images", "the controller is of version %s, the aggregators of %s", controller, aggregator)}
	case own == "":
		return []checkup.Finding{checkup.Okay("controller and aggregators are of version %s", controller)}
	case lower(controller) != lower(own):
		return []checkup.Finding{checkup.Warn("use the weir of that version, or helm upgrade", "controller and aggregators are of version %s, this program is of %s", controller, own)}
	}
	return []checkup.Finding{checkup.Okay("controller, aggregators and this program are of version %s", own)}
}
