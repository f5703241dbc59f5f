package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weirproxy/weir/internal/checkup"
)

// Bounds of what is read of a list.
const (
	pageSize   = 500
	maxObjects = 50_000
)

// kind is a kind of objects.
type kind struct {
	schema.GroupVersionResource
}

func of(group, version, resource string) kind {
	return kind{schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
}

// kubernetes reads objects.
type kubernetes struct {
	client dynamic.Interface
}

// object reads one object into a T; namespace "" for one that has none.
func object[T any](ctx context.Context, k kubernetes, of kind, namespace, name string) (*T, error) {
	u, err := k.client.Resource(of.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return decoded[T](u.Object)
}

// objects reads a list into Ts, page by page; namespace "" for all.
func objects[T any](ctx context.Context, k kubernetes, of kind, namespace, selector string) ([]T, error) {
	var out []T
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := k.client.Resource(of.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			one, err := decoded[T](page.Items[i].Object)
			if err != nil {
				return nil, err
			}
			out = append(out, *one)
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" || len(out) >= maxObjects {
			return out, nil
		}
	}
}

func decoded[T any](from map[string]any) (*T, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("an object that kube-apiserver gave is not of the form expected: %w", err)
	}
	return out, nil
}

// answered reports whether err, if any, is an answer to who asked, whatever it says.
func answered(err error) bool {
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// cannot is the finding of a check that could not read what it needs.
func cannot(verb string, of kind, namespace string, err error) []checkup.Finding {
	what := of.Resource
	if of.Group != "" {
		what += "." + of.Group
	}
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	if apierrors.IsForbidden(err) {
		return []checkup.Finding{checkup.Deny("grant it, if it is to be looked at; docs/check.md has all rights that weir check needs", "this user may not %s %s%s", verb, what, where)}
	}
	return []checkup.Finding{checkup.Fail("run again with a longer --timeout; then look at kube-apiserver", "%s %s%s: %v", verb, what, where, err)}
}

// names joins lines that begin with a name, few of them.
func names(list []string) string { return checkup.Names(list) }

// lower is the form in which versions are compared: without v.
func lower(version string) string { return strings.TrimPrefix(version, "v") }
