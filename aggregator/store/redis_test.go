package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func redisAt(t *testing.T, c Config) *Redis {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// A server that is not there, goes away and comes back (empty) is an error at each call, never a crash, and
// is taken up again without being told.
func TestServerComesAndGoes(t *testing.T) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	addr := m.Addr()
	m.Close()
	r := redisAt(t, Config{Addresses: []string{addr}})
	for range breakerAfter + 2 {
		want(t, r.Flush(t.Context(), &Flush{Owner: owner(logA, 1), Sequence: 1}), ErrUnavailable)
	}
	m = miniredis.NewMiniRedis()
	if err := m.StartAddr(addr); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	back := func() error {
		_, err := r.Claim(t.Context(), owner(logA, 1))
		return err
	}
	must(t, retried(back))
	must(t, retried(func() error {
		return r.Flush(t.Context(), &Flush{Owner: owner(logA, 1), Sequence: 1, Counters: []Counter{whole(c1, 1, 1)}})
	}))
	m.Close()
	want(t, r.Flush(t.Context(), &Flush{Owner: owner(logA, 1), Sequence: 2, Known: 1}), ErrUnavailable)
	if err := m.StartAddr(addr); err != nil {
		t.Fatal(err)
	}
	m.FlushAll()
	must(t, retried(back))
	var got []Saved
	must(t, retried(func() (err error) { // another connection may yet have to notice
		got, err = r.LoadCounters(t.Context(), 3, []wirev1.ID{c1})
		return err
	}))
	if len(got) != 1 || got[0].Found {
		t.Errorf("an emptied server holds %+v", got)
	}
}

func retried(f func() error) (err error) {
	for range 500 {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func (r *Redis) subject() subject { return subject{r.Claim, r.LoadCounters, r.Flush, nil} }

// A loaded script may be gone (SCRIPT FLUSH, a failover): it is sent again.
func TestScriptIsLoadedAgain(t *testing.T) {
	m := miniredis.RunT(t)
	r := redisAt(t, Config{Addresses: []string{m.Addr()}})
	must(t, r.Flush(t.Context(), &Flush{Owner: owner(logA, 1), Sequence: 1, Rewrite: true}))
	must(t, r.do(t.Context(), "forget", func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().ScriptFlush().Build()).Error()
	}))
	must(t, r.Flush(t.Context(), &Flush{Owner: owner(logA, 1), Sequence: 2, Known: 1}))
}

func TestPasswordFile(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireUserAuth("weir", "s3cret")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := redisAt(t, Config{Addresses: []string{m.Addr()}, Username: "weir", PasswordFile: file})
	err := r.Ping(t.Context())
	want(t, err, ErrUnavailable)
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error shows a password: %v", err)
	}
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, r.Ping(t.Context())) // a rotated password is taken up
}

// Keys live at least as long as they were asked to, and not much longer.
func TestKeysExpire(t *testing.T) {
	m := miniredis.RunT(t)
	r := redisAt(t, Config{Addresses: []string{m.Addr()}})
	c := whole(c1, 1, 1)
	c.TTL = 61 * time.Second
	must(t, r.Flush(t.Context(), &Flush{Owner: owner(logA, 1), Sequence: 1, Rewrite: true, Counters: []Counter{c}}))
	if ttl := m.TTL(counterKey(3, c1)); ttl < c.TTL || ttl > c.TTL+c.TTL/10+time.Second {
		t.Errorf("it expires in %v, want %v and up to a tenth more", ttl, c.TTL)
	}
	m.FastForward(c.TTL + c.TTL/10 + time.Second)
	if got := loaded(t, r.subject(), c1); got.Found {
		t.Errorf("still there: %+v", got)
	}
	if !m.Exists(recordKey(3)) {
		t.Error("the partition's record expired")
	}
}

// A spoiled counter is as good as lost; a newer version's fields are skipped.
func TestSpoiledCounters(t *testing.T) {
	m := miniredis.RunT(t)
	r := redisAt(t, Config{Addresses: []string{m.Addr()}})
	m.HSet(counterKey(3, c1), "through", "nonsense", "0", "1")
	if got := loaded(t, r.subject(), c1); got.Found || got.Through != -1 {
		t.Errorf("a spoiled counter is %+v", got)
	}
	m.HSet(counterKey(3, c2), "through", logA.text()+":5", "0", "1", "new-field", "x")
	if got := loaded(t, r.subject(), c2); !got.Found || got.Through != 5 || len(got.Fields) != 1 {
		t.Errorf("a counter of a newer version is %+v", got)
	}
}

func TestBreaker(t *testing.T) {
	var b breaker
	at := time.UnixMilli(0)
	for range breakerAfter {
		if !b.allow(at) {
			t.Fatal("it opens too early")
		}
		b.done(false, at)
	}
	if b.allow(at) {
		t.Error("it is closed after failures")
	}
	at = at.Add(breakerFirst)
	if !b.allow(at) || b.allow(at) {
		t.Error("after the pause one call may try, and one alone")
	}
	for range 20 { // the pause grows up to a bound
		b.done(false, at)
		at = at.Add(breakerLongest)
		if !b.allow(at) {
			t.Fatal("the pause is longer than its bound")
		}
	}
	b.done(true, at)
	for range 2 {
		if !b.allow(at) {
			t.Error("it is open after a success")
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   string // "" is valid
	}{
		{"one server", Config{Addresses: []string{"redis:6379"}}, ""},
		{"a cluster", Config{Addresses: []string{"a:1", "b:2"}, Cluster: true}, ""},
		{"sentinels", Config{Addresses: []string{"a:1", "b:2"}, Sentinel: Sentinel{Master: "m"}}, ""},
		{"nothing", Config{}, "redis.addresses"},
		{"no port", Config{Addresses: []string{"redis"}}, "redis.addresses[0]"},
		{"several", Config{Addresses: []string{"a:1", "b:2"}}, "cluster: true"},
		{"both", Config{Addresses: []string{"a:1"}, Cluster: true, Sentinel: Sentinel{Master: "m"}}, "sentinel.master"},
		{"half a certificate", Config{Addresses: []string{"a:1"}, TLS: TLS{Enabled: true, CertFile: "x"}}, "go together"},
		{"tls off", Config{Addresses: []string{"a:1"}, TLS: TLS{CAFile: "x"}}, "redis.tls.enabled"},
		{"timeout", Config{Addresses: []string{"a:1"}, Timeout: -1}, "redis.timeout"},
	} {
		err := c.config.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := New(Config{Addresses: []string{"a:1"}, PasswordFile: "/does/not/exist"}); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("a missing password file: %v", err)
	}
}

// Parsing what a store answers never panics.
func FuzzParse(f *testing.F) {
	f.Add("through", "AAAAAAAAAAAAAAAAAAAAAA:5", "0", "1")
	f.Add("log", "x", "epoch", "y")
	f.Fuzz(func(_ *testing.T, a, b, c, d string) {
		_, _ = parseCounter(c1, []string{a, b, c, d})
		_, _ = parseCounter(c1, []string{a, b, c})
		_, _ = parseRecord([]string{a, b, c, d})
	})
}

func BenchmarkEncode(b *testing.B) {
	f := Flush{Owner: owner(logA, 1), Sequence: 1}
	for i := range chunkCounters {
		c := whole(c1, 1, uint64(i))
		c.Whole, c.Fields = false, append(c.Fields, Field{Index: 3, Value: 9}, Field{Index: 5, Value: 77})
		f.Counters = append(f.Counters, c)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = Discard(&f)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunkCounters), "ns/counter")
}
