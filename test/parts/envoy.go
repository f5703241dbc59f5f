package parts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// EnvoyOpts configures an Envoy: one listener, perhaps an authorization
// filter, one route to one upstream.
type EnvoyOpts struct {
	// Upstream is the host:port that requests are sent on to. If empty, Envoy
	// itself answers 200, after the filters have run.
	Upstream string
	// UpstreamHTTP2 speaks HTTP/2 to the upstream, as gRPC needs.
	UpstreamHTTP2 bool
	// RawPaths leaves paths as clients spell them: no normalize_path, no
	// merge_slashes.
	RawPaths bool
	// AccessLog is the format of a line that Envoy writes to its output for
	// each request; empty for none.
	AccessLog string
	// Authz is the external authorization filter; nil for none.
	Authz *Authz
	// Concurrency is the number of worker threads, 1 by default.
	Concurrency int
	// TrustedHops is xff_num_trusted_hops: how many proxies in front are
	// believed about the client's address.
	TrustedHops int
	// LogLevel of Envoy's own log, "warning" by default.
	LogLevel string
}

// Authz configures the filter envoy.filters.http.ext_authz, and the cluster
// that it asks.
type Authz struct {
	// Address of the checker: unix:///path/of/socket, or host:port.
	Address string
	// Timeout of one check, 200 ms by default.
	Timeout time.Duration
	// FailureModeAllow lets requests pass when the check fails; otherwise they
	// are answered StatusOnError, 403 by default.
	FailureModeAllow bool
	StatusOnError    int
	// ContextExtensions are sent along with each check, by the route.
	ContextExtensions map[string]string
	// EncodeRawHeaders sends headers as a list of raw values (header_map).
	EncodeRawHeaders bool
	// AllowedHeaders are the only request headers sent along; none named: all.
	AllowedHeaders []string
	// MetadataNamespaces are the namespaces of dynamic metadata sent along.
	MetadataNamespaces []string
}

// Envoy is a real Envoy with a static configuration.
type Envoy struct{ *Server }

// StartEnvoy starts an Envoy and returns when it is live: its workers run and
// its listener accepts. The checker need not be there yet.
func StartEnvoy(t T, opts EnvoyOpts) *Envoy {
	t.Helper()
	binary := tool(t, "envoy", "bin", "envoy")
	dir := t.TempDir()
	return &Envoy{startServer(t, plan{
		name:  "envoy",
		ports: 2,
		command: func(ports []int) (*exec.Cmd, error) {
			text, err := envoyConfig(ports[0], ports[1], opts)
			if err != nil {
				return nil, err
			}
			file := filepath.Join(dir, "envoy.yaml")
			if err := os.WriteFile(file, text, 0o644); err != nil {
				return nil, err
			}
			return exec.Command(binary, envoyArgs(file, opts)...), nil
		},
		ready: func(ports []int) error {
			_, err := envoyAdmin(loopback(ports[1]), "/ready")
			return err
		},
	})}
}

// envoyArgs are those of one of several Envoys on a machine: without hot
// restart they share no memory.
func envoyArgs(file string, opts EnvoyOpts) []string {
	level := opts.LogLevel
	if level == "" {
		level = "warning"
	}
	return []string{
		"--config-path", file,
		"--concurrency", strconv.Itoa(max(1, opts.Concurrency)),
		"--log-level", level,
		"--disable-hot-restart",
		"--file-flush-interval-msec", "100", // of the access log
	}
}

// AdminAddr returns the host:port of Envoy's admin interface.
func (e *Envoy) AdminAddr() string { return loopback(e.ports[1]) }

// URL returns http://host:port of the listener.
func (e *Envoy) URL() string { return "http://" + e.Addr() }

// Stats returns all counters and gauges by their full name, such as
// cluster.upstream.ext_authz.denied or http.ingress.downstream_rq_2xx. One
// that has never been touched may be absent, which reads as 0. Call it on the
// test's goroutine.
func (e *Envoy) Stats() map[string]int64 {
	e.t.Helper()
	text, err := envoyAdmin(e.AdminAddr(), "/stats?type=Counters")
	if err == nil {
		var gauges string
		gauges, err = envoyAdmin(e.AdminAddr(), "/stats?type=Gauges")
		text += gauges
	}
	if err != nil {
		e.t.Fatalf("envoy's stats: %v", err)
	}
	return parseStats(text)
}

// parseStats reads lines of "name: number" and skips all others.
func parseStats(text string) map[string]int64 {
	stats := map[string]int64{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			stats[name] = n
		}
	}
	return stats
}

// envoyAdmin returns the text at a path of the admin interface; any status but
// 200 is an error.
func envoyAdmin(addr, path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}
