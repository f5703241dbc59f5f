package policy

import (
	"fmt"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// TargetName returns the canonical name of a target, namespace/kind/name.
func TargetName(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

// ParseTarget takes a canonical name apart; an error says what is wrong with it.
func ParseTarget(s string) (namespace, kind, name string, err error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || !isLabel(parts[0]) || !isKind(parts[1]) || !isName(parts[2]) {
		return "", "", "", fmt.Errorf("target %q: want namespace/Kind/name, such as shop/Service/orders", s)
	}
	return parts[0], parts[1], parts[2], nil
}

// Matches reports whether the target takes in a pod: by its owner's name, or by its labels where
// the target has a selector. A selector without labels selects nothing.
func (t *Target) Matches(namespace, ownerKind, ownerName string, labels map[string]string) bool {
	ns, rest, ok := strings.Cut(t.Name, "/")
	if !ok || ns != namespace {
		return false
	}
	if rest == ownerKind+"/"+ownerName {
		return true
	}
	for k, want := range t.Selector {
		if got, has := labels[k]; !has || got != want {
			return false
		}
	}
	return len(t.Selector) > 0
}

// targetGroups are the kinds that a policy may attach to, with the group of each.
func targetGroup(kind string) (string, bool) {
	switch kind {
	case "Service":
		return "", true
	case "Deployment", "StatefulSet", "DaemonSet":
		return "apps", true
	case "Gateway", "HTTPRoute", "GRPCRoute":
		return "gateway.networking.k8s.io", true
	default:
		return "", false
	}
}

// compileTargets joins a document's references with the selectors its publisher resolved.
func compileTargets(doc *v1alpha1.QuotaPolicy, resolved []Target) ([]Target, error) {
	selectors := make(map[string]map[string]string, len(resolved))
	for _, r := range resolved {
		selectors[r.Name] = r.Selector
	}
	targets := make([]Target, 0, len(doc.Spec.TargetRefs))
	for _, ref := range doc.Spec.TargetRefs {
		name := TargetName(namespaceOf(doc), ref.Kind, ref.Name)
		targets = append(targets, Target{Name: name, Selector: selectors[name]})
		delete(selectors, name)
	}
	for name := range selectors {
		return nil, fmt.Errorf("resolved target %s is not among the policy's targetRefs; publish the policy anew", name)
	}
	return targets, nil
}

func namespaceOf(doc *v1alpha1.QuotaPolicy) string {
	if doc.Metadata.Namespace == "" {
		return DefaultNamespace
	}
	return doc.Metadata.Namespace
}

// DefaultNamespace is the namespace of a document that names none.
const DefaultNamespace = "default"
