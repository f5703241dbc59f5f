package system

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// checked is what weir check says of the world, and its exit code.
func checked(w *world.World) (r checkup.Report, code int) {
	w.T.Helper()
	code, out := w.Tool("weir", "check", "--json", "--timeout", "5s", "--identity-key-file", w.Key, "--topics-partitions", "4",
		"--kafka-brokers", w.Kafka.Addr(), "--redis-addresses", w.Redis.Addr())
	end := strings.LastIndex(out, "}") // its last word to standard error may follow
	if err := json.Unmarshal([]byte(out[:end+1]), &r); err != nil {
		w.T.Fatalf("%v: exit code %d, %s", err, code, out)
	}
	return r, code
}

// untilFound waits until weir check has a finding of a check at a level, or for "" no failure and no warning.
func untilFound(w *world.World, check string, level checkup.Level, text string) {
	w.T.Helper()
	what := fmt.Sprintf("%s %s: %s", level, check, text)
	parts.Eventually(w.T, world.Patience, what, func() error {
		r, code := checked(w)
		if failed := r.Result == checkup.Failed; (code == 1) != failed {
			w.T.Fatalf("result %s with exit code %d", r.Result, code)
		}
		for _, f := range r.Findings {
			if f.Check == check && f.Level == level && strings.Contains(f.Text, text) && f.Fix != "" {
				return nil
			}
		}
		if check == "" && r.Result == checkup.OK {
			return nil
		}
		return fmt.Errorf("%s", strings.Join(r.Lines(0), "\n"))
	})
}

// weir check on real servers: a whole installation is in order; what is broken is found with a fix, and goes when mended.
func TestCheck(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	w := world.Settled(t, 2, 2, world.Policy(world.EachClient(100, "")))
	untilFound(w, "", checkup.OK, "")

	_, err := w.Redis.Do("CONFIG", "SET", "maxmemory", "100mb")
	w.Must(err)
	_, err = w.Redis.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	w.Must(err)
	untilFound(w, "redis.settings", checkup.Warning, "maxmemory-policy allkeys-lru")
	_, err = w.Redis.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	w.Must(err)

	w.Write("p1.yaml", strings.Replace(world.Policy(world.Everything), "name: orders, namespace", "name: hourly, namespace", 1))
	untilFound(w, "redis.settings", checkup.Warning, "limit shop/hourly/everything counts over an hour or more")
	_, err = w.Redis.Do("CONFIG", "SET", "appendonly", "yes")
	w.Must(err)
	untilFound(w, "", checkup.OK, "")

	setTopic(w, "weir.decisions", "cleanup.policy", "compact")
	untilFound(w, "kafka.topics", checkup.Failed, "topic weir.decisions: cleanup.policy is compact, want delete")
	w.EnsureTopics()

	for _, o := range w.Owners {
		o.Process.Kill()
	}
	untilFound(w, "owners", checkup.Failed, "is silent since")
	for _, o := range w.Owners {
		w.StartOwner(o)
	}
	untilFound(w, "", checkup.OK, "")

	w.Redis.Stop()
	untilFound(w, "redis.reachable", checkup.Failed, w.Redis.Addr())
	w.Redis.Start()
	w.Pods[1].Sidecar.Kill()
	untilFound(w, "sidecars.live", checkup.Warning, "1 sidecar silent for more than 30s: shop/orders-1")
}

// setTopic sets one of a topic's settings.
func setTopic(w *world.World, topic, name, value string) {
	w.T.Helper()
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	admin, err := sarama.NewClusterAdmin([]string{w.Kafka.Addr()}, config)
	w.Must(err)
	defer func() { _ = admin.Close() }()
	w.Must(admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		name: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}, false))
}
