package configfile_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/configfile"
)

var update = flag.Bool("update", false, "rewrite golden files")

const good = `
listen: tcp://127.0.0.1:9191
pod:
  namespace: shop
  labels: {app: orders, tier: "1"}
targets: [shop/Service/orders, shop/Service/carts]
maxCounters: 1000
kafka:
  brokers:
  - kafka-0:9092
  tls: {enabled: true}
stop: {grace: 1m30s}
`

func TestFileHoldsOverDefaultsAndFlagsOverBoth(t *testing.T) {
	c := config.DefaultSidecar()
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags := configfile.Bind(fs, &c, func(configfile.Field) string { return "" })
	// The command line is read before the file is.
	err := fs.Parse([]string{"--max-counters=7", "--target", "a/b/c,d/e/f", "--target=g/h/i",
		"--pod-labels=app=carts", "--kafka-tls-enabled=false", "--stop-grace", "2s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := configfile.Decode("f", []byte(good), &c); err != nil {
		t.Fatal(err)
	}
	flags.Apply()

	want := config.DefaultSidecar()
	want.Listen = "tcp://127.0.0.1:9191"
	want.Pod = config.Pod{Namespace: "shop", Labels: map[string]string{"app": "carts"}}
	want.Targets = []string{"a/b/c", "d/e/f", "g/h/i"}
	want.MaxCounters = 7
	want.Kafka.Brokers = []string{"kafka-0:9092"}
	want.Stop.Grace = 2 * time.Second
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestEveryErrorAtOnceWithLineAndRemedy(t *testing.T) {
	const bad = `
lisen: unix:///s
maxCounters: "many"
pod: [a]
targets: shop/Service/orders
kafka:
  brokers: [{host: a}]
  acks: 1
  tls: {enabled: "true", cafile: /ca, caFile: /ca, caFile: /cb}
  zoo: keeper
stop: {grace: 5}
log: {level: no}
admin: &a {address: 'tcp://127.0.0.1:1'}
identityKeyFile: {}
stateDir: [x]
`
	c := config.DefaultSidecar()
	err := configfile.Decode("sidecar.yaml", []byte(bad), &c)
	var all configfile.Errors
	if !errors.As(err, &all) {
		t.Fatalf("Decode = %v, want Errors", err)
	}
	golden(t, "errors.txt", all.Error()+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to rewrite):\n%s", path, got)
	}
}

func TestWhatIsNoConfigurationFile(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"empty":         {"", ""},
		"comment":       {"# nothing\n", ""},
		"null":          {"null\n", ""},
		"null value":    {"kafka:\nlog: ~\n", ""},
		"null keeps":    {"listen:\n", ""},
		"not yaml":      {"listen: [\n", "f:1: not YAML: "},
		"tabs":          {"pod:\n\tname: x\n", "f:2: not YAML: "},
		"a list":        {"- a\n", "f:1: want keys and values here, not a list"},
		"two documents": {"log: {level: info}\n---\nlog: {level: warn}\n", "second document"},
		"alias":         {"stateDir: &x /a\nlisten: *x\n", "f:2: listen: aliases are not taken"},
		"merge":         {"pod: {<<: {name: a}}\n", "plain text"},
		"too long":      {strings.Repeat("#", configfile.MaxFile+1), "no configuration file"},
	} {
		c := config.DefaultSidecar()
		err := configfile.Decode("f", []byte(tt.in), &c)
		if tt.want == "" {
			if err != nil || !reflect.DeepEqual(c, config.DefaultSidecar()) {
				t.Errorf("%s: %v, %+v; want the defaults", name, err, c)
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestFlagsAreNamedAfterTheirPathAndOnlyOnce(t *testing.T) {
	s, a := config.DefaultSidecar(), config.DefaultAggregator()
	for _, v := range []any{&s, &a} {
		seen := map[string]string{}
		for _, f := range configfile.Fields(v) {
			if other, again := seen[f.Flag]; again {
				t.Errorf("%s and %s share the flag --%s", other, f.Path, f.Flag)
			}
			seen[f.Flag] = f.Path
			if config.Doc(f.Owner+"."+f.Name) == "" {
				t.Errorf("%s has no documentation", f.Path)
			}
		}
		if seen["kafka-tls-ca-file"] != "kafka.tls.caFile" || seen["kafka-client-id"] != "kafka.clientID" {
			t.Errorf("flags: %v", seen)
		}
	}
}

func TestABadFlagValueIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--stop-grace=5"}, {"--max-counters=x"}, {"--pod-labels=a"}, {"--kafka-tls-enabled=perhaps"}, {"--lisen=x"},
	} {
		c := config.DefaultSidecar()
		fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
		configfile.Bind(fs, &c, func(configfile.Field) string { return "" })
		if err := fs.Parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"brokers", "clientID", "tls", "sasl"}
	for in, want := range map[string]string{"broker": "brokers", "clientid": "clientID", "TLS": "tls", "sals": "sasl", "brkoers": "brokers", "zookeeper": "", "": ""} {
		if got, ok := configfile.Nearest(in, keys); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v; want %q", in, got, ok, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("a: &x [*x]\n"))
	f.Add([]byte("<<: {a: b}\nlisten: !!binary aGk=\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := config.DefaultAggregator()
		err := configfile.Decode("f", data, &c)
		if err == nil {
			return
		}
		var all configfile.Errors
		if !errors.As(err, &all) || len(all) == 0 {
			t.Fatalf("an error that is not Errors: %v", err)
		}
		for i, e := range all {
			if e.Reason == "" || i > 0 && e.Line < all[i-1].Line {
				t.Fatalf("errors without a reason or out of order: %v", all)
			}
		}
	})
}
