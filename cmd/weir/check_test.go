package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/weirproxy/weir/internal/embedded"
)

// onlyRedis is an embedded Redis that says this of itself.
func onlyRedis(t *testing.T, info string) string {
	t.Helper()
	r, err := embedded.StartRedis("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Server().Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd == "INFO" {
			c.WriteBulk(strings.ReplaceAll(info, " ", "\r\n"))
		}
		return cmd == "INFO"
	})
	return r.Addr()
}

func TestCheckExitCodes(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	fine := onlyRedis(t, "redis_version:7.0.15 role:master maxmemory:0 maxmemory_policy:noeviction aof_enabled:1")
	evicts := onlyRedis(t, "redis_version:7.0.15 role:master maxmemory:1 maxmemory_policy:allkeys-lru aof_enabled:1")
	for name, tt := range map[string]struct {
		args []string
		code int
		out  []string
		err  string
	}{
		"in order":        {[]string{"--redis-addresses", fine, "--strict"}, 0, []string{"ok       redis.reachable", "skipped  kafka.reachable", "no Kafka is named", "for the policies to say"}, ""},
		"a warning":       {[]string{"--redis-addresses", evicts}, 0, []string{"warning  redis.settings", "fix: CONFIG SET maxmemory-policy noeviction"}, ""},
		"strictly":        {[]string{"--redis-addresses", evicts, "--strict"}, 1, []string{"warning  redis.settings"}, "weir check: 1 warning, and --strict takes them for failures\n"},
		"a failure":       {[]string{"--redis-addresses", "127.0.0.1:1", "--timeout", "1s"}, 1, []string{"failed   redis.reachable", "fix: "}, "weir check: 1 check failed\n"},
		"nothing named":   {nil, 2, nil, "nothing to look at: for Kubernetes name --kubeconfig ~/.kube/config, or --context NAME"},
		"no such context": {[]string{"--context", "none-such"}, 1, nil, `none-such`},
		"no such broker":  {[]string{"--kafka-brokers", "here"}, 1, nil, `"here" is not host:port`},
		"too little time": {[]string{"--redis-addresses", fine, "--timeout", "1ms"}, 2, nil, "--timeout 1ms"},
	} {
		o := weir(t, "", append([]string{"check"}, tt.args...)...)
		if o.code != tt.code || !strings.Contains(o.err, tt.err) {
			t.Errorf("%s: %+v", name, o)
		}
		for _, want := range tt.out {
			if !strings.Contains(o.out, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, o.out)
			}
		}
	}
}

// The fields of --json are for scripts: they stay.
func TestCheckJSONHasStableFields(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	o := weir(t, "", "check", "--json", "--redis-addresses", onlyRedis(t, "redis_version:6.0.16"))
	var got map[string]any
	if err := json.Unmarshal([]byte(o.out), &got); err != nil || o.code != 1 {
		t.Fatalf("%v: %+v", err, o)
	}
	for _, name := range []string{"version", "result", "failed", "warnings", "skipped", "denied", "ok", "findings"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	for _, f := range got["findings"].([]any) {
		f := f.(map[string]any)
		if f["check"] == "redis.reachable" && (f["level"] != "failed" || !strings.Contains(f["finding"].(string), "6.0.16") || f["fix"] == "") {
			t.Errorf("%v", f)
		}
	}
	if got["result"] != "failed" || got["failed"] != 1.0 {
		t.Errorf("%v", got)
	}
}
