package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/policy"
)

func watchedBy(t *testing.T, r request, limits string) (watched, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.yaml")
	head := "apiVersion: weirproxy.dev/v1alpha1\nkind: QuotaPolicy\nmetadata: {name: p, namespace: n}\nspec:\n" +
		"  targetRefs: [{kind: Service, name: s}]\n  client: [{source: RemoteAddress}]\n  limits:\n"
	if err := os.WriteFile(file, []byte(head+limits), 0o600); err != nil {
		t.Fatal(err)
	}
	_, docs, err := readPolicy(file)
	if err != nil {
		t.Fatal(err)
	}
	return watch(docs, func(l *policy.Limit) bool { return concerns(l, r) })
}

func TestTheRateThatTheLoadMeetsFirstIsWatched(t *testing.T) {
	const limits = `  - {name: wide, rates: [{limit: 1000, window: 1s}]}
  - {name: minute, rates: [{limit: 600, window: 1m}, {limit: 50, window: 1s}]}
  - {name: shadow, mode: Shadow, rates: [{limit: 1, window: 1m}]}
  - {name: posts, when: {methods: [POST]}, rates: [{limit: 2, window: 1s, algorithm: TokenBucket, burst: 10}]}
  - {name: canary, enforcePercent: 5, rates: [{limit: 3, window: 1s}]}
  - {name: daily, when: {paths: [{type: Prefix, value: /day}]}, rates: [{limit: 86400, period: Day, algorithm: Calendar}]}
`
	for name, tt := range map[string]struct {
		request
		limit  int
		window time.Duration
		title  string
	}{
		"get":  {request{"GET", "/", nil}, 50, time.Second, "minute"},
		"post": {request{"POST", "/x?y", nil}, 12, time.Second, "posts"},
	} {
		w, err := watchedBy(t, tt.request, limits)
		if err != nil || w.limit != tt.limit || w.window != tt.window || !strings.Contains(w.title, tt.title) {
			t.Errorf("%s: %+v, %v; want %d in %v of %s", name, w, err, tt.limit, tt.window, tt.title)
		}
		if len(w.targets) != 1 || w.targets[0] != "n/Service/s" || w.namespace != "n" {
			t.Errorf("%s: targets %v in %s", name, w.targets, w.namespace)
		}
	}
	w, err := watchedBy(t, request{"GET", "/", nil}, "  - {name: d, rates: [{limit: 86400, period: Day, algorithm: Calendar}]}\n")
	if err != nil || w.limit != 86400 || w.window != 24*time.Hour {
		t.Errorf("a day's quota: %+v, %v", w, err)
	}
	_, err = watchedBy(t, request{"GET", "/", nil}, "  - {name: shadow, mode: Shadow, rates: [{limit: 1, window: 1m}]}\n")
	if err == nil || !strings.Contains(err.Error(), "--path") {
		t.Errorf("a policy that enforces nothing: %v", err)
	}
}

func TestTheDemosOwnPolicy(t *testing.T) {
	_, docs, err := readPolicy("")
	if err != nil {
		t.Fatal(err)
	}
	r := request{"GET", "/", map[string]string{"x-api-key": "demo"}}
	w, err := watch(docs, func(l *policy.Limit) bool { return concerns(l, r) })
	if err != nil || w.limit != 300 || w.window != time.Second {
		t.Errorf("watched %+v, %v", w, err)
	}
}

func TestAStackEndsInReverseOrder(t *testing.T) {
	var order []string
	s := newStack()
	for _, name := range []string{"broker", "sidecar", "load"} {
		s.start(name, func(ctx context.Context) error { <-ctx.Done(); order = append(order, name); return ctx.Err() })
	}
	if err := s.stop(time.Minute); err != nil || strings.Join(order, " ") != "load sidecar broker" {
		t.Errorf("ended %v, %v", order, err)
	}
	s.start("fragile", func(context.Context) error { return errors.New("broken") })
	if err := <-s.failed; !strings.Contains(err.Error(), "fragile ended: broken") {
		t.Errorf("failed: %v", err)
	}
	release := make(chan struct{})
	gone := make(chan struct{})
	s.start("stubborn", func(context.Context) error { defer close(gone); <-release; return nil })
	if err := s.stop(time.Millisecond); err == nil || !strings.Contains(err.Error(), "stubborn") {
		t.Errorf("stop: %v", err)
	}
	close(release)
	<-gone
}

func TestTheTableSaysItAllInPlaceOrLineByLine(t *testing.T) {
	f := &frame{
		title: "demo/demo", at: 3 * time.Second, watched: watched{limit: 300, window: time.Second}, window: 310,
		rows:  []row{{name: "pod-0", counts: counts{540, 190, 350}, age: 12 * time.Millisecond}, {name: "pod-1", age: -1}},
		all:   counts{540, 190, 350},
		hints: []string{"  curl -i http://127.0.0.1:1/"},
	}
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true}
	s.draw(f)
	first := out.Len()
	s.draw(f)
	for _, want := range []string{"540", "190", "350", "65%", "12 ms", "none yet", "310 of 300", "]!", "curl -i"} {
		if !strings.Contains(out.String()[:first], want) {
			t.Errorf("%q is missing in\n%s", want, out.String()[:first])
		}
	}
	if !strings.HasPrefix(out.String()[first:], "\x1b[") {
		t.Error("the second frame is not drawn over the first")
	}
	out.Reset()
	(&screen{out: &out}).draw(f)
	if strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("no terminal: %q", out.String())
	}
}
