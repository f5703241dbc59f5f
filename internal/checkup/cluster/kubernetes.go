package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weirproxy/weir/internal/checkup"
)

// Bounds of what is read of a list.
const (
	pageSize   = 500
	maxObjects = 200_000
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

var errMore = errors.New("there are more than are looked at")

// pages reads a list, page by page, and hands each object to take, which may end it; namespace "" for all. Where it
// fails, what it handed over before holds.
func pages(ctx context.Context, k kubernetes, of kind, namespace, selector string, take func(*unstructured.Unstructured) error) error {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for n := 0; ; {
		page, err := k.client.Resource(of.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil && n > 0 {
			return fmt.Errorf("after the first %d: %w", n, err)
		} else if err != nil {
			return err
		}
		for i := range page.Items {
			if err := take(&page.Items[i]); err != nil {
				return err
			}
		}
		n += len(page.Items)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
		if n >= maxObjects {
			return fmt.Errorf("%w: the first %d were", errMore, n)
		}
	}
}

// objects reads a list into Ts; namespace "" for all. Those read before an error come with it.
func objects[T any](ctx context.Context, k kubernetes, of kind, namespace, selector string) ([]T, error) {
	var out []T
	err := pages(ctx, k, of, namespace, selector, func(u *unstructured.Unstructured) error {
		one, err := decoded[T](u.Object)
		if err == nil {
			out = append(out, *one)
		}
		return err
	})
	return out, err
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
	if errors.Is(err, errMore) {
		return []checkup.Finding{checkup.Warn("weir check is made for smaller clusters: look at the rest by hand", "list %s%s: %v", what, where, err)}
	}
	return []checkup.Finding{checkup.Fail("run again with a longer --timeout; then look at kube-apiserver", "%s %s%s: %v", verb, what, where, err)}
}

// names joins lines that begin with a name, few of them.
func names(list []string) string { return checkup.Names(list) }

// lower is the form in which versions are compared: without v.
func lower(version string) string { return strings.TrimPrefix(version, "v") }
