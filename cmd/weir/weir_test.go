package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/explain"
	"github.com/weirproxy/weir/internal/identitykey"
)

type outcome struct {
	code     int
	out, err string
}

func weir(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Execute(context.WithoutCancel(t.Context()), root(), args, cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return outcome{code, out.String(), errs.String()}
}

const goodPolicy = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  limits:
  - name: each
    counters: [Client]
    rates: [{limit: 100, window: 1s}]
    overrides: [{clients: [{source: Header, name: x-api-key, value: acme}], rates: [{limit: 1000, window: 1s}]}]
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if o := weir(t, "", "key", path); o.code != 0 {
		t.Fatal(o.err)
	}
	return path
}

func TestValidateExitCodes(t *testing.T) {
	good := write(t, "good.yaml", goodPolicy)
	bad := write(t, "bad.yaml", strings.Replace(strings.Replace(goodPolicy, "limit: 100,", "limit: 0,", 1), "name: each", "nam: each", 1))
	for name, tt := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  []string
	}{
		"valid":              {"", []string{"validate", good}, 0, []string{"shop/orders is valid"}},
		"standard input":     {goodPolicy, []string{"validate", "-"}, 0, []string{"-: shop/orders is valid"}},
		"directory":          {"", []string{"validate", filepath.Dir(good)}, 0, []string{"good.yaml: shop/orders"}},
		"all errors at once": {"", []string{"validate", bad, good}, 1, []string{"bad.yaml:8:", "nam", "spec.limits[0].rates[0].limit"}},
		"missing file":       {"", []string{"validate", "no-such.yaml"}, 1, []string{"no-such.yaml"}},
		"empty file":         {"", []string{"validate", write(t, "e.yaml", "")}, 1, []string{"holds no policy"}},
		"no file":            {"", []string{"validate"}, 2, []string{"weir validate --help"}},
		"unknown flag":       {"", []string{"validate", "--nope", good}, 2, []string{"--nope"}},
		"unknown command":    {"", []string{"valdate"}, 2, []string{"valdate"}},
		"no command":         {"", nil, 2, []string{"name a command", "validate"}},
	} {
		o := weir(t, tt.stdin, tt.args...)
		if o.code != tt.code {
			t.Errorf("%s: exit code %d, want %d (%s%s)", name, o.code, tt.code, o.out, o.err)
		}
		for _, w := range tt.want {
			if !strings.Contains(o.out+o.err, w) {
				t.Errorf("%s: %q is missing in\n%s%s", name, w, o.out, o.err)
			}
		}
	}
}

func TestKeyIsNewSecretAndNeverOverwritten(t *testing.T) {
	path := newKey(t)
	info, err := os.Stat(path)
	if err != nil || info.Size() != wirev1.KeySize || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	before, _ := os.ReadFile(path)
	if o := weir(t, "", "key", path); o.code != 1 || !strings.Contains(o.err, "never overwritten") {
		t.Errorf("second key: %+v", o)
	}
	after, _ := os.ReadFile(path)
	other, _ := os.ReadFile(newKey(t))
	if !bytes.Equal(before, after) || bytes.Equal(before, other) {
		t.Error("the key changed, or two keys are equal")
	}
}

func TestHashIsWhatAPolicyIsPublishedWith(t *testing.T) {
	key := newKey(t)
	byArg := weir(t, "", "hash", "--key", key, "--header", "X-API-Key", "acme")
	byPipe := weir(t, "acme\n", "hash", "--key", key, "--header", "x-api-key")
	if byArg.code != 0 || byArg.out != byPipe.out || len(strings.TrimSpace(byArg.out)) != wirev1.SecretSize {
		t.Errorf("hash: %+v and %+v", byArg, byPipe)
	}
	keys, err := identitykey.Read(key)
	if err != nil {
		t.Fatal(err)
	}
	want := string(keys.AppendSecret(nil, wirev1.DimClientHeader, "x-api-key", []byte("acme")))
	if strings.TrimSpace(byArg.out) != want {
		t.Errorf("hash = %s, want %s", byArg.out, want)
	}
	for _, args := range [][]string{{"hash", "v"}, {"hash", "--key", key, "--header", "h"}, {"hash", "--key", key, "v"}} {
		if o := weir(t, "", args...); o.code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, o.code)
		}
	}
	if o := weir(t, "", "hash", "--key", write(t, "short", "abc"), "--header", "h", "v"); o.code != 1 || !strings.Contains(o.err, "weir key") {
		t.Errorf("a short key: %+v", o)
	}
}

func TestExplainAsksTheSidecarAndSaysWhoRefuses(t *testing.T) {
	var got explain.Request
	s := admin.New(admin.Config{}, zap.NewNop())
	total, share := 100.0, 0.6
	s.HandleDebug("POST "+explain.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admin.ReadJSON(w, r, &got) {
			return
		}
		admin.WriteJSON(w, 200, explain.Response{
			Outcome: "refused", Status: 429, RefusedBy: "shop/orders/each", Targets: []string{"shop/Service/orders"},
			Counters: []explain.Counter{{
				Policy: "shop/orders", Limit: "each", Rate: "100/1s", Mode: "Enforce", ID: "00ff", CountedBy: []string{"client header x-api-key (hashed)"},
				Basis: "Decision", Amount: 100, Total: &total, Share: &share, RetryAfterMS: 320,
			}},
		})
	}))
	server := httptest.NewServer(s.Handler())
	defer server.Close()

	args := []string{"explain", "--sidecar", server.Listener.Addr().String(), "--method", "POST", "--path", "/orders/7?x=1",
		"--header", "X-API-Key: acme", "--header", "x-api-key:b", "--remote-address", "10.0.0.1", "--claim", "sub=me"}
	o := weir(t, "", args...)
	if o.code != 0 {
		t.Fatal(o.err)
	}
	for _, w := range []string{"refused with 429 by shop/orders/each", "100/1s", "100.0 of 100 over all pods", "60.0 %", "retry after  0.3", "hashed"} {
		if !strings.Contains(o.out, w) {
			t.Errorf("%q is missing in\n%s", w, o.out)
		}
	}
	if got.Method != "POST" || got.Path != "/orders/7?x=1" || len(got.Headers["x-api-key"]) != 2 || got.Claims["sub"] != "me" {
		t.Errorf("the sidecar was asked %+v", got)
	}
	o = weir(t, "", append(args, "--json")...)
	var answer explain.Response
	if err := json.Unmarshal([]byte(o.out), &answer); err != nil || answer.RefusedBy != "shop/orders/each" {
		t.Errorf("--json: %v, %s", err, o.out)
	}
}

// A sidecar that cannot answer is not one that allows: the answer says whose failure mode holds.
func TestExplainOfASidecarWithoutPolicies(t *testing.T) {
	var out bytes.Buffer
	printAnswer(&out, explain.Response{Outcome: "not_loaded", Degraded: []string{"no topic"}})
	if got := out.String(); !strings.Contains(got, "Envoy's own failure mode applies (not_loaded)") ||
		!strings.Contains(got, "degraded: no topic") || strings.Contains(got, "no limit applies") {
		t.Errorf("printed\n%s", got)
	}
	out.Reset()
	printAnswer(&out, explain.Response{Outcome: "no_policy", Allowed: true})
	if got := out.String(); !strings.Contains(got, "allowed (no_policy)") || !strings.Contains(got, "no limit applies") {
		t.Errorf("printed\n%s", got)
	}
}

func TestExplainSaysWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nobody there": {[]string{"explain", "--sidecar", "127.0.0.1:1"}, 1, "is the program running"},
		"bad address":  {[]string{"explain", "--sidecar", "here"}, 2, "tcp://host:port"},
		"bad header":   {[]string{"explain", "--header", "x-api-key"}, 2, "name: value"},
	} {
		if o := weir(t, "", tt.args...); o.code != tt.code || !strings.Contains(o.err, tt.want) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
