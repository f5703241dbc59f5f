package charts

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Values that cannot be meant are refused with the place, and what is missing with the remedy.
func TestValuesAreRefused(t *testing.T) {
	const needed = "kafka: {brokers: ['k:9092']}\nredis: {addresses: ['r:6379']}\n"
	for values, wants := range map[string][]string{
		"":                                     {"kafka.brokers: none given", "--set 'kafka.brokers={", "redis.addresses: none given"},
		needed + "aggregator: {replica: 3}":    {"at '/aggregator'", "'replica' not allowed"},
		needed + "agregator: {}":               {"'agregator' not allowed"},
		needed + "controller: {replicas: two}": {"/controller/replicas", "want integer"},
		needed + "aggregator: {podLabels: {a: 1}}":                   {"/aggregator/podLabels/a", "want string"},
		needed + "sidecar: {mode: Native2}":                          {"/sidecar/mode", "'Native', 'Plain'"},
		needed + "sidecar: {resources: {limits: {disk: 1}}}":         {"/sidecar/resources/limits", "'disk' not allowed"},
		needed + "aggregator: {resources: {limits: {memory: lots}}}": {"/aggregator/resources/limits/memory"},
		needed + "image: {digests: {sidecar: abc}}":                  {"/image/digests/sidecar"},
		"redis: {addresses: ['r:6379']}\nkafka: {brokers: ['k:9092'], tls: {enabled: true, caFile: ca.crt}, sasl: {mechanism: PLAIN}}": {
			"kafka.clients.aggregator.secret", "kafka.clients.controller.secret", "kafka.clients.sidecar.secret", "kafka.clients.topics.username", "kafka.sasl.username for all"},
		"kafka: {brokers: ['k:9092']}\nredis: {addresses: ['r:6379'], passwordFile: password}": {"redis.secret"},
		needed + "injection: {certificates: {mode: Secret}}":                                   {"injection.certificates.caBundle", "--set-file"},
		needed + "aggregator: {autoscaling: {mode: HPA, minReplicas: 9}}":                      {"minReplicas is above maxReplicas"},
		needed + "topics: {replication: 1, minInSync: 2}":                                      {"topics.minInSync"},
	} {
		v := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		_, err := Render(v, Living(""))
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s\ngot %v\nwant %q", values, err, want)
			}
		}
	}
}

// Without the cluster the key that was made cannot be seen, and another one would end all counts.
func TestNoKeyIsMadeBlindly(t *testing.T) {
	values, err := Values("minimal")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Render(values, nil); err == nil || !strings.Contains(err.Error(), "identity.existingSecret") {
		t.Errorf("got %v", err)
	}
	values["identity"] = map[string]any{"existingSecret": "mine"}
	files, err := Render(values, nil)
	if err != nil || files["identity.yaml"] != "" && strings.Contains(files["identity.yaml"], "Secret") {
		t.Errorf("got %q, %v", files["identity.yaml"], err)
	}
}

// With the cluster a key is made once: 32 bytes, another one in each installation, and the same from then on.
func TestTheKeyIsMadeOnce(t *testing.T) {
	values, err := Values("minimal")
	if err != nil {
		t.Fatal(err)
	}
	key := func(c Cluster) string {
		files, err := Render(values, c)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(files["identity.yaml"], "\"identity.key\": ")
		return strings.TrimSpace(after)
	}
	first, second := key(Living("")), key(Living(""))
	if first == second || len(first) != 44 {
		t.Errorf("keys %q and %q", first, second)
	}
	if again := key(Living(first)); again != first {
		t.Errorf("an upgrade makes %q of %q", again, first)
	}
	broken := Living("")
	broken["Secret/weir-identity"] = map[string]any{"data": map[string]any{"other": first}}
	if _, err := Render(values, broken); err == nil || !strings.Contains(err.Error(), "without the key identity.key") {
		t.Errorf("a Secret with another key: %v", err)
	}
}
