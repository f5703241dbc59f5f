package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/aggregator/partition"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
)

// golden holds got against testdata/name; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // for all to read
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is printed:\n%s", path, got)
	}
}

// fakeAggregator answers with what f returns, as an aggregator does, and returns its address.
func fakeAggregator(t *testing.T, f func(r *http.Request) (int, any)) string {
	t.Helper()
	s := admin.New(admin.Config{}, zap.NewNop())
	s.HandleDebug("GET "+partition.TopPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, v := f(r)
		admin.WriteJSON(w, code, v)
	}))
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func holds(top partition.Top) func(*http.Request) (int, any) {
	return func(*http.Request) (int, any) { return 200, top }
}

var topOfA = partition.Top{
	Instance: "agg-a", Partitions: 8, Held: []int32{0, 1, 2}, LeftOut: 2,
	Limits: []partition.LimitView{
		{Limit: "shop/orders/each-client", Rate: "100/1s", Mode: "Enforce", Owners: []string{"agg-a"}, Counters: 1200, Over: 1, Fullest: 1.017, OverUnits: 5.5,
			OverSeconds: 2.25, Offered: 3012.4, Refused: 0.66, Top: []partition.CounterView{
				{ID: "00ff", Target: "shop/Service/orders", CountedBy: []string{"client header x-api-key (hash 3299cc04)"}, Content: 101, Amount: 100, Offered: 900},
				{ID: "00fe", Target: "shop/Service/orders", CountedBy: []string{`client principal "spiffe://shop/ns/x"`, `endpoint "GET /orders/{id}"`}, Content: 99, Amount: 100, Offered: 1.25},
			}},
		{Limit: "shop/orders/writes", Rate: "20/1s burst 40", Mode: "Shadow", Owners: []string{"agg-a"}, Counters: 3, Fullest: 1, Offered: 3,
			Top: []partition.CounterView{{ID: "01", Target: "shop/Service/orders", CountedBy: []string{"client unknown"}, Content: 12, Amount: 40, Offered: 3}}},
		{Limit: "shop/orders/quiet", Rate: "5/1m", Mode: "Enforce", Owners: []string{"agg-a"}, Counters: 1, Top: []partition.CounterView{}},
	},
}

var topOfB = partition.Top{
	Instance: "agg-b", Partitions: 8, Held: []int32{6, 7},
	Limits: []partition.LimitView{
		{Limit: "shop/orders/each-client", Rate: "100/1s", Mode: "Enforce", Owners: []string{"agg-b"}, Counters: 5, Fullest: 0.4, Offered: 100,
			Top: []partition.CounterView{{ID: "0a", Target: "shop/Service/carts", CountedBy: []string{"client header x-api-key (hash 00000001)"}, Content: 40, Amount: 100, Offered: 40}}},
		{Limit: "shop/carts/all", Rate: "5000/1s", Mode: "Enforce", Owners: []string{"agg-b"}, Counters: 1, Over: 1, Fullest: 1.25, OverUnits: 1000, OverSeconds: 30,
			Offered: 20000, Refused: 0.75, Top: []partition.CounterView{{ID: "0b", Target: "shop/Service/carts", Content: 5011, Amount: 5000, Offered: 20000}}},
	},
}

func TestTopShowsLimitsOfAllAggregatorsByHowClose(t *testing.T) {
	a, b := fakeAggregator(t, holds(topOfA)), fakeAggregator(t, holds(topOfB))
	for name, args := range map[string][]string{
		"top.txt": nil, "top_counters.txt": {"--counters", "3"}, "top_two.txt": {"--limit", "2"}, "top.json": {"--json", "--limit", "2"},
	} {
		o := weir(t, "", append([]string{"top", "--aggregator", a, "--aggregator", b}, args...)...)
		if o.code != 0 || o.err != "" {
			t.Errorf("%v: exit code %d, %s", args, o.code, o.err)
		}
		golden(t, name, o.out)
	}
}

func TestTopWithoutCountersSaysSo(t *testing.T) {
	o := weir(t, "", "top", "--aggregator", fakeAggregator(t, holds(partition.Top{Instance: "a", Partitions: 1, Held: []int32{0}, Limits: []partition.LimitView{}})))
	if want := "0 limits · 1 aggregator · 1 of 1 partition\n\nno limit has a live counter\n"; o.code != 0 || o.out != want {
		t.Errorf("exit code %d: %q", o.code, o.out)
	}
}

// One that does not answer takes nothing from what the others say, and makes the command fail.
func TestTopOfAnAggregatorThatDoesNotAnswer(t *testing.T) {
	a := fakeAggregator(t, holds(topOfA))
	away := fakeAggregator(t, func(*http.Request) (int, any) { return 503, map[string]string{"error": "not connected to Kafka yet"} })
	o := weir(t, "", "top", "--aggregator", a+","+away)
	if o.code != 1 || !strings.Contains(o.out, "each-client") || !strings.Contains(o.err, away+" answered 503: not connected to Kafka yet") {
		t.Errorf("exit code %d, %s%s", o.code, o.out, o.err)
	}
	o = weir(t, "", "top", "--json", "--aggregator", a, "--aggregator", "127.0.0.1:1")
	var answer topAnswer
	if err := json.Unmarshal([]byte(o.out), &answer); o.code != 1 || err != nil || len(answer.Errors) != 1 || len(answer.Limits) != 3 {
		t.Errorf("exit code %d, %v: %s", o.code, err, o.out)
	}
	sidecar := httptest.NewServer(admin.New(admin.Config{}, zap.NewNop()).Handler())
	defer sidecar.Close()
	if o = weir(t, "", "top", "--aggregator", sidecar.Listener.Addr().String()); o.code != 1 || !strings.Contains(o.err, "is it an aggregator") {
		t.Errorf("another program: %+v", o)
	}
	if o = weir(t, "", "top", "--aggregator", "127.0.0.1:1"); o.code != 1 || o.out != "" || !strings.Contains(o.err, "is the program running") {
		t.Errorf("nobody there: %+v", o)
	}
}

func TestTopRefusesWhatMakesNoSense(t *testing.T) {
	for want, args := range map[string][]string{
		"--limit 0": {"--limit", "0"}, "--limit 101": {"--limit", "101"}, "--counters 6": {"--counters", "6"}, "--every 1ms": {"--every", "1ms"},
		"tcp://host:port": {"--aggregator", "here"},
	} {
		if o := weir(t, "", append([]string{"top"}, args...)...); o.code != 2 || !strings.Contains(o.err, want) {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

// watched runs weir top --watch until the aggregator has been asked n times.
func watched(t *testing.T, n int64, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	var times atomic.Int64
	a := fakeAggregator(t, func(*http.Request) (int, any) {
		asked := times.Add(1)
		if asked >= n {
			stop()
		}
		if asked == 2 {
			return 503, map[string]string{"error": "handing over"}
		}
		return 200, partition.Top{Instance: "a", Partitions: 1, Held: []int32{0}, Limits: topOfA.Limits[:1]}
	})
	var out bytes.Buffer
	args = append([]string{"top", "--watch", "--every", "200ms", "--aggregator", a}, args...)
	if code := cli.Execute(ctx, root(), args, cli.Streams{Out: &out, Err: &out}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	return strings.ReplaceAll(out.String(), a, "ADDR")
}

func TestTopWatchGoesOnUntilItIsStopped(t *testing.T) {
	golden(t, "top_watch.txt", watched(t, 4))
	lines := strings.Split(strings.TrimSpace(watched(t, 3, "--json")), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines of JSON, want one each time: %v", len(lines), lines)
	}
	for _, l := range lines {
		if err := json.Unmarshal([]byte(l), new(topAnswer)); err != nil {
			t.Errorf("%v: %s", err, l)
		}
	}
}

// On a terminal a table takes the place of the one before, cut to the terminal's size.
func TestTopStaysInPlaceOnATerminal(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, size: func() (int, int) { return 5, 3 }}
	s.draw([]string{"a title", "b", "c", "d"}, true)
	s.draw([]string{"é2345"}, true)
	want := clearAll + goHome + "a ti…" + clearLine + "\nb" + clearLine + "\n" + clearRest + goHome + "é2345" + clearLine + "\n" + clearRest
	if out.String() != want {
		t.Errorf("drawn as %q", out.String())
	}
	out.Reset()
	(&screen{out: &out, size: s.size}).draw([]string{"a title"}, false)
	if out.String() != "a title\n" {
		t.Errorf("once it is drawn as %q", out.String())
	}
}

// Each field of the JSON is on its page.
func TestTopJSONIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/top.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{topAnswer{}, partition.Top{}, partition.LimitView{}, partition.CounterView{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(page), "| `"+name+"` |") {
				t.Errorf("docs/reference/top.md has no row of %s", name)
			}
		}
	}
}
