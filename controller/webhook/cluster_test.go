package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weirproxy/weir/internal/inject"
)

// answers is a server that reads each object by do.
func answers(do func(context.Context, client.Object) error) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return do(ctx, o)
		},
	})
}

// down is a server that answers nothing.
func down() client.Client {
	return answers(func(context.Context, client.Object) error { return errors.New("connection refused") })
}

// hangs is a cache that is not filled.
func hangs() client.Client {
	return answers(func(ctx context.Context, _ client.Object) error { <-ctx.Done(); return ctx.Err() })
}

func with(label string) client.Client {
	return fake.NewClientBuilder().WithObjects(namespaceOf("shop", label)).Build()
}

func TestANamespaceLabelledAMomentAgoIsEnabled(t *testing.T) {
	for name, tt := range map[string]struct {
		cache, live client.Reader
		label       string
		fails       bool
	}{
		"the cache knows it":        {cache: with(inject.Enabled), live: down(), label: inject.Enabled},
		"the cache is behind":       {cache: with(""), live: with(inject.Enabled), label: inject.Enabled},
		"the namespace is new":      {cache: fake.NewClientBuilder().Build(), live: with(inject.Enabled), label: inject.Enabled},
		"the cache is not filled":   {cache: hangs(), live: with(inject.Enabled), label: inject.Enabled},
		"it has no label":           {cache: with(""), live: with("")},
		"nobody can say":            {cache: with(""), live: down(), fails: true},
		"nobody answers":            {cache: hangs(), live: hangs(), fails: true},
		"no label any more, cached": {cache: with(inject.Disabled), live: with("")},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, err := NewReader(tt.cache, tt.live).Label(t.Context(), "shop")
			if got != tt.label || (err != nil) != tt.fails {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
}

// counted is a server of one label that takes a while, and how often it was asked.
func counted(label *string, reads *atomic.Int32) client.Client {
	return answers(func(ctx context.Context, o client.Object) error {
		reads.Add(1)
		time.Sleep(10 * time.Millisecond)
		o.SetLabels(map[string]string{inject.Label: *label})
		return nil
	})
}

func TestManyReviewsOfOneNamespaceReadItOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label, reads := inject.Enabled, atomic.Int32{}
		r := NewReader(down(), counted(&label, &reads))
		burst := func() {
			for range 100 {
				go func() {
					if got, err := r.Label(t.Context(), "shop"); got != inject.Enabled || err != nil {
						t.Errorf("%q, %v", got, err)
					}
				}()
			}
			time.Sleep(rememberFor * 2 / 3)
			synctest.Wait()
		}
		burst()
		burst()
		if n := reads.Load(); n != 1 {
			t.Errorf("%d reads within a second, want 1", n)
		}
		burst()
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads after a second, want 2", n)
		}
	})
}

// A pod that went without a sidecar stays without, so a "no" is never a remembered one.
func TestALabelThatComesIsSeenByTheNextReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label, reads := "", atomic.Int32{}
		r := NewReader(down(), counted(&label, &reads))
		if got, err := r.Label(t.Context(), "shop"); got != "" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		label = inject.Enabled
		if got, err := r.Label(t.Context(), "shop"); got != inject.Enabled || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestAReviewThatIsGivenUpLeavesTheReadToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label, reads := inject.Enabled, atomic.Int32{}
		r := NewReader(down(), counted(&label, &reads))
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { _, err := r.Label(ctx, "shop"); first <- err }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		if got, err := r.Label(t.Context(), "shop"); got != inject.Enabled || err != nil || reads.Load() != 1 {
			t.Errorf("%q, %v after %d reads", got, err, reads.Load())
		}
	})
}

func TestRememberedNamespacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label, reads := inject.Enabled, atomic.Int32{}
		r := NewReader(down(), counted(&label, &reads))
		for i := range 3 * maxRemember {
			go func() { _, _ = r.Label(t.Context(), fmt.Sprint("n", i)) }()
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if n := len(r.reads); n > maxRemember {
			t.Errorf("%d are remembered, at most %d", n, maxRemember)
		}
	})
}
