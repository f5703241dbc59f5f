package system

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/test/parts"
)

var client = &http.Client{Timeout: 5 * time.Second}

func get(url string) (status int, body string, err error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// ask sends one request through a pod's Envoy and returns the answer's status, header and body.
func (w *world) ask(p *pod, method, path string, header map[string]string) (int, http.Header, string) {
	w.t.Helper()
	req, err := http.NewRequest(method, p.envoy.URL()+path, nil)
	w.must(err)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	w.must(err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	w.must(err)
	return resp.StatusCode, resp.Header, string(b)
}

// metric sums the samples of a metric whose labels contain all of the given texts.
func (w *world) metric(admin, name string, labels ...string) float64 {
	w.t.Helper()
	_, body, err := get("http://" + admin + "/metrics")
	w.must(err)
	sum := 0.0
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
		line := s.Text()
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') || !containsAll(rest, labels) {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		w.must(err)
		sum += v
	}
	return sum
}

func containsAll(s string, texts []string) bool {
	for _, t := range texts {
		if !strings.Contains(s, t) {
			return false
		}
	}
	return true
}

// counter is one counter as Redis holds it.
type counter struct {
	identity wirev1.Identity
	total    uint64
}

// counters reads all counters of a policy's limit from Redis.
func (w *world) counters(limit string) ([]counter, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{w.redis.Addr()}, DisableCache: true, ForceSingleClient: true,
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	keys, err := c.Do(ctx, c.B().Keys().Pattern("{weir:*}:c:*").Build()).AsStrSlice()
	if err != nil {
		return nil, err
	}
	var out []counter
	for _, k := range keys {
		h, err := c.Do(ctx, c.B().Hgetall().Key(k).Build()).AsStrMap()
		if err != nil {
			return nil, err
		}
		n, err := readCounter(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		if n.identity.Limit == limit {
			out = append(out, n)
		}
	}
	return out, nil
}

// readCounter reads the two fields that the store documents for others: identity and 0, the total.
func readCounter(h map[string]string) (n counter, err error) {
	if n.identity, err = wirev1.DecodeIdentity([]byte(h["identity"])); err != nil {
		return n, err
	}
	n.total, err = strconv.ParseUint(h["0"], 10, 64)
	return n, err
}

// total is the sum of a limit's counters in Redis.
func (w *world) total(limit string) (uint64, error) {
	cs, err := w.counters(limit)
	sum := uint64(0)
	for _, c := range cs {
		sum += c.total
	}
	return sum, err
}

// expectTotal waits until Redis holds just want for a limit, and that it stays so.
func (w *world) expectTotal(limit string, want int) {
	w.t.Helper()
	parts.Eventually(w.t, patience, fmt.Sprintf("%d units of %s in Redis", want, limit), func() error {
		got, err := w.total(limit)
		if err == nil && got != uint64(want) { //nolint:gosec // a tally is never negative
			err = fmt.Errorf("Redis has %d", got)
		}
		return err
	})
	time.Sleep(300 * time.Millisecond) // anything still on its way would count twice
	got, err := w.total(limit)
	w.must(err)
	if got != uint64(want) { //nolint:gosec // a tally is never negative
		w.t.Errorf("%s: Redis moved on to %d of %d", limit, got, want)
	}
}
