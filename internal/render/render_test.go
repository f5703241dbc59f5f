package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirproxy/weir/internal/listen"
)

var update = flag.Bool("update", false, "rewrite golden files")

var (
	socket = listen.Address{Network: "unix", Path: "/run/weir/check.sock"}
	tcp    = listen.Address{Network: "tcp", Path: "127.0.0.1:9191"}
	// full needs all that policies may.
	full = Needs{Known: true, Headers: []string{"user-agent", "x-api-key"}, Claims: true, FailClosed: true}
)

func plainly(targets ...string) Options {
	return Options{
		Targets: targets, Check: socket,
		Listener: "0.0.0.0:8080", Service: "127.0.0.1:8081", Admin: "127.0.0.1:9901",
	}
}

func with(o Options, change func(*Options)) Options {
	change(&o)
	return o
}

// cases are all that is printed, by the name of its golden file.
func cases() map[string]func() ([]byte, error) {
	pod, routes := plainly("shop/Service/orders"), plainly("shop/HTTPRoute/orders", "shop/GRPCRoute/stock")
	withoutClaims := func(o *Options) { o.Needs = full; o.Needs.Claims = false }
	return map[string]func() ([]byte, error){
		"envoy": func() ([]byte, error) { return Envoy(pod) },
		"envoy-full": func() ([]byte, error) {
			return Envoy(with(pod, func(o *Options) { o.Needs, o.AccessLog = full, true }))
		},
		"envoy-marked": func() ([]byte, error) {
			return Envoy(with(pod, func(o *Options) { o.Check, o.MarkUnchecked, o.Timeout = tcp, true, time.Second }))
		},
		"envoy-routes": func() ([]byte, error) { return Envoy(routes) },
		"istio":        func() ([]byte, error) { return Istio(with(pod, func(o *Options) { o.Check = tcp })) },
		"istio-socket": func() ([]byte, error) { return Istio(pod) },
		"istio-gateway": func() ([]byte, error) {
			return Istio(with(plainly("shop/Gateway/edge"), func(o *Options) { o.Check = tcp }))
		},
		"istio-mesh": func() ([]byte, error) { return IstioMesh(with(pod, func(o *Options) { o.Check = tcp })) },
		"istio-mesh-closed": func() ([]byte, error) {
			return IstioMesh(with(with(pod, withoutClaims), func(o *Options) { o.Check = tcp }))
		},
		"istio-envoyfilter": func() ([]byte, error) { return IstioEnvoyFilter(pod) },
		"istio-envoyfilter-full": func() ([]byte, error) {
			return IstioEnvoyFilter(with(pod, func(o *Options) { o.Needs, o.Selector = full, map[string]string{"app.kubernetes.io/name": "orders"} }))
		},
		"istio-envoyfilter-routes": func() ([]byte, error) {
			return IstioEnvoyFilter(with(routes, func(o *Options) { o.Gateway, o.RouteRules = "edge/public", 2 }))
		},
		"istio-envoyfilter-gateway": func() ([]byte, error) { return IstioEnvoyFilter(plainly("shop/Gateway/edge")) },
		"envoy-gateway":             func() ([]byte, error) { return EnvoyGateway(plainly("shop/HTTPRoute/orders")) },
		"envoy-gateway-full": func() ([]byte, error) {
			return EnvoyGateway(with(with(routes, withoutClaims), func(o *Options) { o.Gateway = "edge/public" }))
		},
	}
}

func rendered(t *testing.T, name string) []byte {
	t.Helper()
	got, err := cases()[name]()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

func TestGolden(t *testing.T) {
	for name := range cases() {
		got, path := rendered(t, name), filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; run with -update to write it", err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; run with -update and read the difference. Got:\n%s", path, got)
		}
	}
}

// decoded are the documents of what is printed.
func decoded(t *testing.T, text []byte) (docs []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); err != nil {
			return docs
		}
		docs = append(docs, doc)
	}
}

// filters are all ext_authz filters of a document, as Envoy would read them.
func filters(t *testing.T, v any) (found []*extauthzv3.ExtAuthz) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, c := range v {
			found = append(found, filters(t, c)...)
		}
	case map[string]any:
		if kind, _ := v["@type"].(string); strings.HasSuffix(kind, ".ExtAuthz") {
			delete(v, "@type")
			f := &extauthzv3.ExtAuthz{}
			if err := protojson.Unmarshal(jsonOf(t, v), f); err != nil {
				t.Fatal(err)
			}
			return []*extauthzv3.ExtAuthz{f}
		}
		for _, c := range v {
			found = append(found, filters(t, c)...)
		}
	}
	return found
}

// What Envoy and Istio's proxy are given is one filter, and a valid one by Envoy's own rules.
func TestOneFilterEverywhere(t *testing.T) {
	for _, pair := range [][2]string{{"envoy", "istio-envoyfilter"}, {"envoy-full", "istio-envoyfilter-full"}} {
		var texts [2]string
		for i, name := range pair {
			fs := filters(t, any(decoded(t, rendered(t, name))[0]))
			if len(fs) != 1 {
				t.Fatalf("%s has %d filters", name, len(fs))
			}
			if err := fs[0].ValidateAll(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			texts[i] = fs[0].String()
		}
		if texts[0] != texts[1] {
			t.Errorf("%s and %s differ:\n%s\n%s", pair[0], pair[1], texts[0], texts[1])
		}
	}
}

func TestNeedsDecideTheFilter(t *testing.T) {
	open := filters(t, any(decoded(t, rendered(t, "envoy"))[0]))[0]
	if !open.GetFailureModeAllow() || open.GetAllowedHeaders() != nil || open.GetMetadataContextNamespaces() != nil {
		t.Errorf("without policies: %v", open)
	}
	closed := filters(t, any(decoded(t, rendered(t, "envoy-full"))[0]))[0]
	if closed.GetFailureModeAllow() || closed.GetStatusOnError().GetCode() != 503 {
		t.Errorf("failing closed: %v", closed)
	}
	var names []string
	for _, p := range closed.GetAllowedHeaders().GetPatterns() {
		names = append(names, p.GetExact())
	}
	if got := strings.Join(names, " "); got != "content-type origin user-agent x-api-key" {
		t.Errorf("headers are %s", got)
	}
	if got := closed.GetMetadataContextNamespaces(); len(got) != 1 || got[0] != "envoy.filters.http.jwt_authn" {
		t.Errorf("metadata is %v", got)
	}
}

// No time-out is what somebody's default would have made of it.
func TestTimeoutsAreSaid(t *testing.T) {
	for name, want := range map[string][]string{
		"envoy":             {"timeout: 0.150s", "connect_timeout: 0.150s", "stream_idle_timeout: ", "request_headers_timeout: ", "timeout: 15s"},
		"istio":             {"connectTimeout: 0.15s"},
		"istio-mesh":        {"timeout: 0.15s"},
		"istio-envoyfilter": {"timeout: 0.150s", "connect_timeout: 0.150s"},
		"envoy-gateway":     {"timeout: 150ms", "connectTimeout: 150ms"},
	} {
		text := string(rendered(t, name))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q", name, w)
			}
		}
	}
}

// A note that no field bears is one that somebody renamed the field of.
func TestEachNoteIsPrinted(t *testing.T) {
	var all strings.Builder
	for name := range cases() {
		all.Write(rendered(t, name))
	}
	printed := words(all.String())
	for _, needs := range []Needs{{}, full} {
		m, err := newModel(with(plainly("shop/Service/orders"), func(o *Options) { o.Needs = needs }))
		if err != nil {
			t.Fatal(err)
		}
		for path, note := range m.notes() {
			if !strings.Contains(printed, words(note)) {
				t.Errorf("%s: nowhere is %q", path, note)
			}
		}
	}
}

// words is text without line breaks and signs of comment.
func words(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "#", " ")), " ")
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	pod, route := plainly("shop/Service/orders"), plainly("shop/HTTPRoute/orders")
	for _, c := range []struct {
		say   string
		write func(Options) ([]byte, error)
		o     Options
	}{
		{"istio-envoyfilter", Istio, with(pod, func(o *Options) { o.Needs = full })},
		{"istio-envoyfilter", IstioMesh, route},
		{"istio-envoyfilter", Istio, plainly("shop/Gateway/a", "shop/Gateway/b")},
		{"--gateway", IstioEnvoyFilter, route},
		{"claimToHeaders", EnvoyGateway, with(route, func(o *Options) { o.Needs = full })},
		{"unix socket", EnvoyGateway, with(route, func(o *Options) { o.Check = tcp })},
		{"HTTPRoute", EnvoyGateway, pod},
		{"want NAMESPACE/NAME", EnvoyGateway, with(route, func(o *Options) { o.Gateway = "a/b/c" })},
		{"apart", Envoy, plainly("shop/Service/orders", "shop/HTTPRoute/orders")},
		{"two namespaces", Envoy, plainly("shop/HTTPRoute/a", "more/HTTPRoute/a")},
		{"one name", Envoy, plainly("shop/HTTPRoute/orders", "shop/GRPCRoute/orders")},
		{"one name", IstioEnvoyFilter, with(plainly("shop/HTTPRoute/orders", "shop/GRPCRoute/orders"), func(o *Options) { o.Gateway = "shop/edge" })},
		{"another Gateway apart", IstioEnvoyFilter, plainly("shop/Gateway/a", "shop/Gateway/b")},
		{"another Gateway apart", IstioEnvoyFilter, with(plainly("shop/Gateway/other"), func(o *Options) { o.Gateway = "shop/edge" })},
		{"one at least", Envoy, plainly()},
		{"namespace/Kind/name", Envoy, plainly("orders")},
		{"milliseconds", Envoy, with(pod, func(o *Options) { o.Timeout = time.Microsecond })},
		{"milliseconds", Envoy, with(pod, func(o *Options) { o.Timeout = -time.Second })},
		{"IP address", Envoy, with(pod, func(o *Options) { o.Service = "orders:80" })},
		{"host:port", Envoy, with(pod, func(o *Options) { o.Listener = "8080" })},
		{"IP address", Envoy, with(pod, func(o *Options) { o.Admin = "127.0.0.1:99999" })},
	} {
		got, err := c.write(c.o)
		if err == nil || !strings.Contains(err.Error(), c.say) || got != nil {
			t.Errorf("%v: %v, want %q", c.o.Targets, err, c.say)
		}
	}
}

// Envoy and kubectl read YAML 1.1, in which some names would be true or false.
func TestWordsOfOldYAMLAreQuoted(t *testing.T) {
	o := plainly("shop/HTTPRoute/no")
	o.Needs = Needs{Known: true, Headers: []string{"on"}}
	got, err := Envoy(o)
	if err != nil || !strings.Contains(string(got), `{exact: "on"}`) || !strings.Contains(string(got), `name: "no"`) {
		t.Errorf("%v\n%s", err, got)
	}
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
