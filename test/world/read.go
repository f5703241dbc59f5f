package world

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

// Get asks for a URL and returns the status and the body.
func Get(url string) (status int, body string, err error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Ask sends one request through a pod's Envoy and returns the answer's status, header and body.
func (w *World) Ask(p *Pod, method, path string, header map[string]string) (int, http.Header, string) {
	w.T.Helper()
	req, err := http.NewRequest(method, p.Envoy.URL()+path, nil)
	w.Must(err)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	w.Must(err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	w.Must(err)
	return resp.StatusCode, resp.Header, string(b)
}

// Metric sums the samples of a metric whose labels contain all of the given texts.
func (w *World) Metric(admin, name string, labels ...string) float64 {
	w.T.Helper()
	_, body, err := Get("http://" + admin + "/metrics")
	w.Must(err)
	sum := 0.0
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
		line := s.Text()
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') || !containsAll(rest, labels) {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		w.Must(err)
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

// Counter is one counter as Redis holds it.
type Counter struct {
	Identity wirev1.Identity
	Total    uint64
}

// Counters reads all counters of a policy's limit from Redis.
func (w *World) Counters(limit string) ([]Counter, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{w.Redis.Addr()}, DisableCache: true, ForceSingleClient: true,
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
	var out []Counter
	for _, k := range keys {
		h, err := c.Do(ctx, c.B().Hgetall().Key(k).Build()).AsStrMap()
		if err != nil {
			return nil, err
		}
		n, err := readCounter(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		if n.Identity.Limit == limit {
			out = append(out, n)
		}
	}
	return out, nil
}

// readCounter reads the two fields that the store documents for others: identity and 0, the total.
func readCounter(h map[string]string) (n Counter, err error) {
	if n.Identity, err = wirev1.DecodeIdentity([]byte(h["identity"])); err != nil {
		return n, err
	}
	n.Total, err = strconv.ParseUint(h["0"], 10, 64)
	return n, err
}

// Total is the sum of a limit's counters in Redis.
func (w *World) Total(limit string) (uint64, error) {
	cs, err := w.Counters(limit)
	sum := uint64(0)
	for _, c := range cs {
		sum += c.Total
	}
	return sum, err
}

// ExpectTotal waits until Redis holds just want for a limit, and that it stays so.
func (w *World) ExpectTotal(limit string, want int) {
	w.T.Helper()
	parts.Eventually(w.T, Patience, fmt.Sprintf("%d units of %s in Redis", want, limit), func() error {
		got, err := w.Total(limit)
		if err == nil && got != uint64(want) { //nolint:gosec // a tally is never negative
			err = fmt.Errorf("Redis has %d", got)
		}
		return err
	})
	time.Sleep(300 * time.Millisecond) // anything still on its way would count twice
	got, err := w.Total(limit)
	w.Must(err)
	if got != uint64(want) { //nolint:gosec // a tally is never negative
		w.T.Fatalf("%s: Redis moved on to %d of %d", limit, got, want)
	}
}

// Stat sums Envoy's statistics of its clusters that end in suffix, such as ext_authz.error.
func (p *Pod) Stat(suffix string) (sum int) {
	for name, v := range p.Envoy.Stats() {
		if strings.HasPrefix(name, "cluster.") && strings.HasSuffix(name, suffix) {
			sum += int(v)
		}
	}
	return sum
}

// Uncounted is how many requests the Envoys let through because a check failed.
func (w *World) Uncounted() (sum int) {
	for _, p := range w.Pods {
		sum += p.Stat("ext_authz.failure_mode_allowed")
	}
	return sum
}
