package installation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/policy"
)

// says makes Redis tell this of itself.
func (w *world) says(info string) {
	w.redis.Server().Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "INFO" {
			return false
		}
		c.WriteBulk(strings.ReplaceAll(info, " ", "\r\n"))
		return true
	})
}

const goodRedis = "redis_version:7.0.15 role:master maxmemory:0 maxmemory_policy:noeviction aof_enabled:1"

// set changes a topic's setting.
func (w *world) set(topic, name, value string) {
	w.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op, c.Value = name, kmsg.IncrementalAlterConfigOpSet, &value
	r.Configs = append(r.Configs, c)
	req.Resources = append(req.Resources, r)
	p := w.producer()
	defer p.Close()
	_, err := req.RequestWith(w.t.Context(), p)
	w.must(err)
}

// Each way to be broken is found, with what to do about it, and is found no more once that is done.
func TestEachBreakIsFoundWithAFixAndGoesWhenMended(t *testing.T) {
	w := newWorld(t).begin()
	w.says(goodRedis)
	if r := check(t, w.config()); r.Result != checkup.OK || r.Skipped > 0 {
		t.Fatalf("a healthy installation:\n%s", text(r))
	}
	refreshed := func() { w.status(nil) }
	steadily := func() { w.ownerSays(nil) }
	for _, tt := range []struct {
		name        string
		breaks      func()
		check       string
		level       checkup.Level
		text, fix   string
		mends       func()
		leavesOther bool // other checks may find something too
	}{
		{"a topic setting that loses counts", func() { w.set("weir.usage", "retention.ms", "60000") }, "kafka.topics", checkup.Failed,
			"topic weir.usage: retention.ms is 60000, want 600000", "topics ensure", w.ensure, false},
		{"a topic setting that costs", func() { w.set("weir.decisions", "segment.ms", "9000000") }, "kafka.topics", checkup.Warning,
			"segment.ms is 9000000, want 60000", "topics ensure", w.ensure, false},
		{"a topic is gone", func() { w.must(w.kafka.Cluster().DeleteTopic("weir.status")) }, "kafka.topics", checkup.Failed,
			"topic weir.status: does not exist", "topics ensure", func() { w.ensure(); w.status(nil) }, true},
		{"another identity key", func() { w.install(func(i *wirev1.Installation) { i.KeyFingerprint++ }) }, "kafka.installation", checkup.Failed,
			"the file that was given", "same identityKeyFile", func() { w.install(nil) }, true},
		{"another number of partitions", func() { w.install(func(i *wirev1.Installation) { i.Partitions = 16 }) }, "kafka.installation", checkup.Failed,
			"began with 16 partitions, the topic of usage has 2", "16 partitions again", func() { w.install(nil) }, true},
		{"topics made anew", func() { w.install(func(i *wirev1.Installation) { i.UsageTopicId = make([]byte, 16) }) }, "kafka.installation", checkup.Warning,
			"made anew", "restart weir-aggregator", func() { w.install(nil) }, false},
		{"Redis drops counters", func() { w.says(strings.NewReplacer(":0", ":1048576", "noeviction", "allkeys-lru").Replace(goodRedis)) }, "redis.settings", checkup.Warning,
			"maxmemory-policy allkeys-lru", "noeviction", func() { w.says(goodRedis) }, false},
		{"an old Redis", func() { w.says(strings.Replace(goodRedis, "7.0.15", "6.0.16", 1)) }, "redis.reachable", checkup.Failed,
			"is Redis 6.0.16", "6.2", func() { w.says(goodRedis) }, false},
		{"a replica", func() { w.says(strings.Replace(goodRedis, "master", "slave", 1)) }, "redis.reachable", checkup.Failed,
			"replica", "master", func() { w.says(goodRedis) }, false},
		{"Redis tells nothing", func() { w.says("") }, "redis.settings", checkup.Skipped,
			"does not tell", "by hand", func() { w.says(goodRedis) }, false},
		{"a partition without an owner", func() { w.ownerSays(func(p int32, _ *wirev1.Header) bool { return p != 1 }) }, "owners", checkup.Failed,
			"partition 1: the owner weir-aggregator-0 is silent since", "start weir-aggregator", steadily, false},
		{"an owner with another key", func() {
			w.ownerSays(func(_ int32, h *wirev1.Header) bool { h.KeyFingerprint++; return true })
		}, "owners", checkup.Failed, "partitions 0-1: the owner weir-aggregator-0 has another identity key", "same identityKeyFile", steadily, false},
		{"two owners", func() {
			w.ownerSays(func(_ int32, h *wirev1.Header) bool {
				if h.Sequence%2 == 0 {
					h.Epoch, h.Instance = 9, "weir-aggregator-1"
				}
				return true
			})
		}, "owners", checkup.Failed, "two owners: weir-aggregator-0 still decides after weir-aggregator-1", "older", func() {
			w.ownerSays(func(_ int32, h *wirev1.Header) bool { h.Epoch, h.Instance = 9, "weir-aggregator-1"; return true })
		}, false},
		{"a silent sidecar", func() { w.statusOfAge(20*time.Minute, func(s *wirev1.PodStatus) { s.Pod = "shop/lost" }) }, "sidecars.live", checkup.Warning,
			"1 sidecar silent for more than 30s: shop/lost (20m0s)", "log", func() { w.write("weir.status", 0, "shop/lost", nil, 0) }, false},
		{"a degraded sidecar", func() {
			w.status(func(s *wirev1.PodStatus) { s.Degraded, s.Reasons = true, []string{"decisions are stale"} })
		}, "sidecars.live", checkup.Warning, "1 sidecar degraded: decisions are stale (shop/orders-a)", "failure mode", refreshed, false},
		{"a sidecar that is not ready", func() {
			w.status(func(s *wirev1.PodStatus) { s.Ready, s.Reasons = false, []string{"no policies yet"} })
		}, "sidecars.live", checkup.Warning, "1 sidecar not ready: no policies yet", "failure mode", refreshed, false},
		{"a sidecar with another key", func() { w.status(func(s *wirev1.PodStatus) { s.KeyFingerprint++ }) }, "sidecars.live", checkup.Failed,
			"1 sidecar has another identity key", "restart", refreshed, false},
		{"no sidecar", func() { w.write("weir.status", 0, ordersPod, nil, 0) }, "sidecars.live", checkup.Warning,
			"no sidecar has reported", "weir inject", refreshed, true},
		{"an older sidecar", func() { w.status(func(s *wirev1.PodStatus) { s.ProgramVersion = "v1.0.0" }) }, "sidecars.versions", checkup.Warning,
			`1 sidecar of version "v1.0.0", this program is of "v1.2.3": shop/orders-a`, "restart", refreshed, false},
		{"a policy that no sidecar has", func() {
			w.publish(policy.OriginCLI, strings.NewReplacer("name: orders, ", "name: carts, ", "name: orders}", "name: carts}").Replace(orders))
		}, "policies.in-force", checkup.Warning, "policy cli/shop/carts: no live sidecar has its target shop/Service/carts", "label the namespace",
			func() { w.write("weir.policies", 0, "cli/shop/carts", nil, 0) }, false},
		{"an invalid policy", func() { w.write("weir.policies", 0, "cli/shop/bad", []byte("no policy"), 0) }, "policies.valid", checkup.Failed,
			"policy cli/shop/bad: version", "correct it", func() { w.write("weir.policies", 0, "cli/shop/bad", nil, 0) }, false},
		{"a record of another program", func() { w.write("weir.policies", 0, "else", []byte("x"), 0) }, "policies.valid", checkup.Warning,
			"1 record that", "find who", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.breaks()
			r := check(t, w.config())
			f, ok := found(r, tt.check, tt.level)
			if !ok || !strings.Contains(f.Text, tt.text) || !strings.Contains(f.Fix, tt.fix) {
				t.Errorf("want %s of %s with %q and fix %q:\n%s", tt.level, tt.check, tt.text, tt.fix, text(r))
			}
			for _, other := range r.Findings {
				if !tt.leavesOther && other.Check != tt.check && other.Level != checkup.OK {
					t.Errorf("%s says %s too: %s", other.Check, other.Level, other.Text)
				}
			}
			if tt.mends == nil {
				return
			}
			tt.mends()
			if r := check(t, w.config()); r.Result != checkup.OK {
				t.Errorf("mended, and still:\n%s", text(r))
			}
		})
	}
}

// A target that no policy names is allowed, and never silently.
func TestCase15TargetWithoutAPolicyIsSaid(t *testing.T) {
	w := newWorld(t).begin()
	w.says(goodRedis)
	w.status(func(s *wirev1.PodStatus) {
		s.Pod, s.Targets, s.Policies = "shop/carts-a", []string{"shop/Deployment/carts"}, nil
	})
	f, ok := found(check(t, w.config()), "sidecars.policies", checkup.Warning)
	if !ok || !strings.Contains(f.Text, "no policy for shop/Deployment/carts, so every request to 1 pod is allowed: shop/carts-a") || !strings.Contains(f.Fix, "QuotaPolicy") {
		t.Errorf("%+v", f)
	}
	w.write("weir.status", 0, "shop/carts-a", nil, 0)
	if r := check(t, w.config()); r.Result != checkup.OK {
		t.Errorf("it is gone, and still:\n%s", text(r))
	}
}

// CASE 25: a policy counts as enforced only where every live sidecar says so.
func TestCase25PolicyNotInForceIsSaidWithTheSidecars(t *testing.T) {
	w := newWorld(t).begin()
	w.says(goodRedis)
	w.status(func(s *wirev1.PodStatus) { s.Pod = "shop/orders-b" })
	newest := w.publish(policy.OriginCLI, strings.Replace(orders, "100", "200", 1))
	old := w.policy
	w.policy = newest
	w.status(nil)
	f, ok := found(check(t, w.config()), "policies.in-force", checkup.Failed)
	if !ok || !strings.Contains(f.Text, "1 of 2 live sidecars enforce version") || !strings.Contains(f.Text, "shop/orders-b (has version") {
		t.Errorf("%+v; old version %d", f, old)
	}
	w.status(func(s *wirev1.PodStatus) {
		s.Pod, s.Policies = "shop/orders-b", []*wirev1.AppliedPolicy{{Key: "cli/shop/orders", Version: old, Seen: newest, Error: "spec.limits[0]: unknown field"}}
	})
	r := check(t, w.config())
	if f, ok := found(r, "policies.valid", checkup.Failed); !ok || !strings.Contains(f.Text, "refused by sidecars: spec.limits[0]: unknown field (shop/orders-b)") {
		t.Errorf("a refusal: %s", text(r))
	}
	w.status(func(s *wirev1.PodStatus) { s.Pod = "shop/orders-b" })
	if r := check(t, w.config()); r.Result != checkup.OK {
		t.Errorf("all have it:\n%s", text(r))
	}
}

func TestOneNameOfTwoOriginsIsSaid(t *testing.T) {
	w := newWorld(t).begin()
	w.says(goodRedis)
	kube := w.publish(policy.OriginKube, orders)
	w.status(func(s *wirev1.PodStatus) {
		s.Policies = append(s.Policies, &wirev1.AppliedPolicy{Key: "kube/shop/orders", Version: kube, Seen: kube})
	})
	f, ok := found(check(t, w.config()), "policies.valid", checkup.Warning)
	if !ok || !strings.Contains(f.Text, "kube/shop/orders is in force, not cli/shop/orders") || !strings.Contains(f.Fix, "weir apply --delete") {
		t.Errorf("%+v", f)
	}
}

// DESIGN 4 and 6: long windows ask for a file in Redis, calendars for retention in Kafka.
func TestLongLimitsAskForMoreOfKafkaAndRedis(t *testing.T) {
	w := newWorld(t).begin()
	daily := strings.Replace(orders, ordersLimit, "rates: [{limit: 100, period: Day, algorithm: Calendar}]", 1)
	w.policy = w.publish(policy.OriginCLI, daily)
	w.status(nil)
	w.says(strings.Replace(goodRedis, "aof_enabled:1", "aof_enabled:0", 1))
	r := check(t, w.config())
	if f, ok := found(r, "redis.settings", checkup.Warning); !ok || !strings.Contains(f.Text, "limit shop/orders/all counts over an hour or more") || !strings.Contains(f.Fix, "appendonly yes") {
		t.Errorf("persistence:\n%s", text(r))
	}
	if f, ok := found(r, "retention", checkup.Warning); !ok || !strings.Contains(f.Text, "keeps reports for 10m0s") || !strings.Contains(f.Fix, "topics.usageRetention: 1h") {
		t.Errorf("retention:\n%s", text(r))
	}
	w.says(goodRedis)
	w.set("weir.usage", "retention.ms", "3600000")
	if r := check(t, w.config()); r.Result != checkup.OK {
		t.Errorf("mended:\n%s", text(r))
	}
}

// A user of Redis with the rights of an aggregator's, and no more, gets the rest checked.
func TestRedisThatMayNotBeAskedIsSkippedInPart(t *testing.T) {
	w := newWorld(t).begin()
	w.redis.Server().Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "INFO" {
			return false
		}
		c.WriteError("NOPERM User weir has no permissions to run the 'info' command")
		return true
	})
	r := check(t, w.config())
	if f, ok := found(r, "redis.settings", checkup.Skipped); !ok || !strings.Contains(f.Fix, "+info") || r.Result != checkup.OK {
		t.Errorf("%s", text(r))
	}
	w.redis.Server().Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "EVALSHA" {
			return false
		}
		c.WriteError("NOPERM User weir has no permissions to run the 'evalsha' command")
		return true
	})
	if f, ok := found(check(t, w.config()), "redis.reachable", checkup.Failed); !ok || !strings.Contains(f.Text, "the script does not run") || !strings.Contains(f.Fix, "+evalsha") {
		t.Errorf("%+v", f)
	}
}

// A program built without a version tells those of the sidecars apart, and no more.
func TestVersionsWithoutOnesOwn(t *testing.T) {
	of := func(versions ...string) *fleet {
		f := &fleet{}
		for i, v := range versions {
			f.pods = append(f.pods, &pod{PodStatus: &wirev1.PodStatus{Pod: string(rune('a' + i)), ProgramVersion: v}})
		}
		return f
	}
	if got := judgeVersions(of("v1", "v1"), ""); len(got) != 1 || got[0].Level != checkup.OK {
		t.Errorf("%+v", got)
	}
	if got := judgeVersions(of("v1", "v2"), ""); len(got) != 1 || got[0].Level != checkup.Warning || !strings.Contains(got[0].Text, `"v1": a; "v2": b`) {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsNamed(t *testing.T) {
	r := check(t, Config{Version: ownVersion})
	if r.Result != checkup.OK || r.Skipped != 2 || len(r.Findings) != 2 {
		t.Errorf("one line for Kafka and one for Redis:\n%s", text(r))
	}
}

// What is away fails once; what needs it is skipped and takes no time.
func TestWhatIsAwayFailsOnceWithAFix(t *testing.T) {
	w := newWorld(t).begin()
	cfg := w.config()
	cfg.Kafka.Brokers, cfg.Redis.Addresses = []string{"127.0.0.1:1"}, []string{"127.0.0.1:1"}
	c := New(cfg)
	defer c.Close()
	r := checkup.Run(t.Context(), c.All(), time.Second)
	for _, name := range []string{"kafka.reachable", "redis.reachable"} {
		if f, ok := found(r, name, checkup.Failed); !ok || !strings.Contains(f.Text, "127.0.0.1:1") || f.Fix == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if r.Failed != 2 || r.Skipped != len(r.Findings)-2 {
		t.Errorf("the rest is skipped:\n%s", text(r))
	}
}

func TestNoTopicsYet(t *testing.T) {
	w := newWorld(t)
	r := check(t, w.config())
	if f, ok := found(r, "kafka.topics", checkup.Failed); !ok || !strings.Contains(f.Fix, "topics ensure") {
		t.Errorf("%s", text(r))
	}
	if f, ok := found(r, "owners", checkup.Skipped); !ok || !strings.Contains(f.Text, "weir.decisions does not exist") {
		t.Errorf("%s", text(r))
	}
}

func TestNoOwnerEver(t *testing.T) {
	w := newWorld(t).begin()
	w.ownerSays(func(int32, *wirev1.Header) bool { return false })
	w.must(w.kafka.Cluster().DeleteTopic("weir.decisions"))
	w.ensure()
	f, ok := found(check(t, w.config()), "owners", checkup.Failed)
	if !ok || !strings.Contains(f.Text, "partitions 0-1: no owner") || !strings.Contains(f.Fix, "start weir-aggregator") {
		t.Errorf("%+v", f)
	}
}

// secured is an installation whose broker wants users with rights; as is the configuration of one of them.
func secured(t *testing.T, rights ...kfake.ACL) (w *world, as func(user string) bus.Config, root *bus.Client) {
	t.Helper()
	w = newWorld(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "p"), kfake.User("PLAIN", "weir-check", "p", rights...))
	as = func(user string) bus.Config {
		return bus.Config{Brokers: []string{w.kafka.Addr()}, SASL: bus.SASL{Mechanism: "PLAIN", Username: user, PasswordFile: w.file("p")}}
	}
	root, err := bus.Dial(t.Context(), as("root"), nopLog())
	w.must(err)
	_, err = root.Ensure(t.Context(), bus.Topics{Partitions: partitions}, false)
	w.must(err)
	return w, as, root
}

// A user without rights gets the command that grants each, for the topic that it lacks, and no failure: but with
// --strict what nobody could look at is not in order.
func TestRightsThatAreMissingAreNamedWithTheCommand(t *testing.T) {
	allow := func(topic string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	w, as, _ := secured(t, allow("weir.policies", kmsg.ACLOperationRead), allow("weir.usage", kmsg.ACLOperationDescribe), allow("weir.usage", kmsg.ACLOperationDescribeConfigs),
		allow("weir.decisions", kmsg.ACLOperationDescribe))
	cfg := w.config()
	cfg.Kafka = as("weir-check")
	r := check(t, cfg)
	for _, want := range []struct{ check, text, fix string }{
		{"kafka.topics", "may not DescribeConfigs topic weir.decisions", "--operation DescribeConfigs --topic weir.decisions"},
		{"kafka.topics", "may not DescribeConfigs topic weir.policies", "--operation DescribeConfigs --topic weir.policies"},
		{"kafka.topics", "may not Describe topic weir.status", "--operation Describe --topic weir.status"},
		{"owners", "may not Read topic weir.decisions", "--operation Read --topic weir.decisions"},
		{"sidecars.live", "may not Read topic weir.status", "--operation Read --topic weir.status"},
	} {
		i := slices.IndexFunc(r.Findings, func(f checkup.Finding) bool {
			return f.Check == want.check && f.Denied && strings.Contains(f.Text, want.text) && strings.Contains(f.Fix, want.fix)
		})
		if i < 0 {
			t.Errorf("want %+v:\n%s", want, text(r))
		} else if fix := r.Findings[i].Fix; !strings.Contains(fix, "--allow-principal User:weir-check") || !strings.Contains(fix, "--command-config") || !strings.Contains(fix, "--acl-check User:weir-check") {
			t.Errorf("fix %q", fix)
		}
	}
	if strings.Contains(text(r), "topic weir.usage") {
		t.Errorf("nothing of weir.usage is lacking:\n%s", text(r))
	}
	if strings.Contains(text(r), "password") {
		t.Error("something of the password is printed")
	}
	if r.Err(true) == nil {
		t.Error("--strict passes what it could not look at")
	}
}

// The one topic that may not be described is the one that is named, whatever check meets it first.
func TestTheRefusedTopicIsNamed(t *testing.T) {
	w, as, root := secured(t)
	_, err := root.EnsureACLs(t.Context(), bus.Topics{}, bus.Principals{Sidecar: "User:weir-check"}, false) // decisions and usage, described alone
	w.must(err)
	cfg := w.config()
	cfg.Kafka = as("weir-check")
	if r := check(t, cfg); !strings.Contains(text(r), "may not DescribeConfigs topic weir.usage") || strings.Contains(text(r), "may not Describe topic weir.usage") {
		t.Errorf("%s", text(r))
	}
	w2, as2, _ := secured(t, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "weir.usage", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribe, Allow: true})
	cfg = w2.config()
	cfg.Kafka = as2("weir-check")
	r := check(t, cfg)
	for _, name := range []string{"kafka.topics", "owners"} {
		if f, ok := found(r, name, checkup.Skipped); !ok || f.Text != "this user may not Describe topic weir.decisions" {
			t.Errorf("%s: %+v\n%s", name, f, text(r))
		}
	}
}

// What topics ensure --acls gives weir check is all that it needs.
func TestTheDocumentedRightsAreEnough(t *testing.T) {
	w, as, root := secured(t)
	_, err := root.EnsureACLs(t.Context(), bus.Topics{}, bus.Principals{Check: "User:weir-check"}, false)
	w.must(err)
	cfg := w.config()
	cfg.Kafka = as("weir-check")
	if r := check(t, cfg); r.Denied > 0 || !strings.Contains(text(r), "the four topics exist") {
		t.Errorf("%s", text(r))
	}
}

// A number of partitions that was mistyped is put back; only a topic that was made wrong is made anew, which loses counts.
func TestAMistypedNumberOfPartitionsIsPutBack(t *testing.T) {
	w := newWorld(t).begin()
	w.says(goodRedis)
	cfg := w.config()
	cfg.Topics.Partitions = 8
	f, ok := found(check(t, cfg), "kafka.topics", checkup.Failed)
	if !ok || !strings.HasPrefix(f.Fix, "set topics.partitions back to 2,") {
		t.Errorf("%+v", f)
	}
	w.install(func(i *wirev1.Installation) { i.Partitions = 8 }) // it began with 8: not the number is wrong but the topic
	if f, ok = found(check(t, cfg), "kafka.topics", checkup.Failed); !ok || !strings.HasPrefix(f.Fix, "make the topic anew with 8 partitions") {
		t.Errorf("%+v", f)
	}
}
