package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common/util"
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
		tls("kafka: {brokers: ['k:9092']", "caFile: ca.crt"):                                   {"kafka.tls.caFile: connections are not encrypted", "kafka.tls.enabled"},
		tls("kafka: {brokers: ['k:9092'], secret: s", "certFile: tls.crt"):                     {"kafka.tls: certFile and keyFile"},
		tls("redis: {addresses: ['r:6379']", "keyFile: k"):                                     {"redis.tls.keyFile", "redis.tls: certFile and keyFile"},
		"kafka: {brokers: ['k:9092'], clients: {sidecar: {username: u}}}":                      {"kafka.sasl.mechanism: without it no program logs in as u."},
		"redis: {username: u}":                                      {"redis.passwordFile: without it nobody logs in"},
		"redis: {cluster: true, sentinel: {master: m}}":             {"redis.cluster: the addresses are nodes of a cluster or sentinels"},
		"redis: {secret: s, sentinel: {passwordFile: p}}":           {"redis.sentinel.master: without it"},
		"redis: {secret: s, sentinel: {master: m, username: u}}":    {"redis.sentinel.passwordFile: without it"},
		"kafka: {secret: one}\nredis: {secret: one}":                {"redis.secret: the Secret one is copied"},
		"kafka: {secret: one}\nidentity: {existingSecret: one}":     {"kafka: the Secret one is the identity key's"},
		"kafka: {clients: {topics: {secret: weir-identity}}}":       {"kafka: the Secret weir-identity is the identity key's"},
		"identity: {existingSecret: weir-webhook-tls}":              {"injection.certificates.secret: the Secret weir-webhook-tls is copied"},
		"injection: {certificates: {mode: Secret, caBundle: x}}":    {"injection.certificates.secret: weir-webhook-tls is the Secret that the chart makes", "another name"},
		"aggregator: {podDisruptionBudget: {maxUnavailable: 0}}":    {"aggregator.podDisruptionBudget.maxUnavailable", "enabled: false"},
		"controller: {podDisruptionBudget: {maxUnavailable: 0%}}":   {"controller.podDisruptionBudget.maxUnavailable"},
		"monitoring: {prometheusRule: {disabled: [WeirKafkaaway]}}": {"there is no alert WeirKafkaaway", "WeirAggregatorsDown"},
		"commonLabels: {app.kubernetes.io/name: other}":             {"commonLabels: app.kubernetes.io/name is the chart's own"},
		"aggregator: {podLabels: {app.kubernetes.io/component: x}}": {"aggregator.podLabels: app.kubernetes.io/component is the chart's own"},
		"kafka: {secret: s, sasl: {mechanism: PLAIN, username: u}, clients: {check: {username: c}}}\ntopics: {acls: {enabled: true}}":   {"topics.acls.check: the rights would be User:weir-check's, and it logs in as c"},
		"kafka: {secret: s, sasl: {mechanism: PLAIN, username: u}}\ntopics: {acls: {enabled: true, sidecar: 'User:u', controller: ''}}": {"topics.acls.aggregator: the rights would be User:weir-aggregator's, and it logs in as u", "Set it to User:u"},
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

// tls adds a setting of TLS to a section that is not encrypted.
func tls(section, setting string) string { return section + ", tls: {" + setting + "}}" }

// A Secret that is a release's own goes with the mode that made it, whatever it is called.
func TestTheCertificateIsNotTheReleasesOwn(t *testing.T) {
	values, err := Values("everything")
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]bool{"weir": true, "other": false} {
		cluster := Living(keyInUse)
		cluster["Secret/webhook-certificate"] = map[string]any{"metadata": map[string]any{"annotations": map[string]any{"meta.helm.sh/release-name": owner}}}
		_, err := Render(values, cluster)
		if refused := err != nil && strings.Contains(err.Error(), "webhook-certificate is the Secret that the chart makes"); refused != want {
			t.Errorf("of release %s: %v", owner, err)
		}
	}
}

// What may be meant is said in the notes.
func TestNotesWarn(t *testing.T) {
	for values, want := range map[string]string{
		"kafka: {secret: s, sasl: {mechanism: PLAIN, username: u}}": "The Secret s, with which weir's own programs (aggregator, controller, topics)",
		"kafka: {secret: s}":        "",
		"aggregator: {replicas: 9}": "9 aggregators for 8 partitions",
		"topics: {partitions: 4}\naggregator: {autoscaling: {mode: HPA}}":                    "8 aggregators for 4 partitions",
		"monitoring: {podMonitor: {enabled: true}}":                                          "bind the ClusterRole weir-metrics-reader",
		"monitoring: {podMonitor: {enabled: true, serviceAccount: {name: p}}}":               "",
		"monitoring: {prometheusRule: {enabled: true}}":                                      "monitoring.podMonitor is off",
		"kafka: {secret: s, tls: {enabled: true, certFile: c, keyFile: k}}":                  "The Secret s",
		"kafka: {secret: s, tls: {enabled: true, caFile: c}, clients: {check: {secret: x}}}": "",
	} {
		v := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		least, err := Values("minimal")
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Render(util.CoalesceTables(map[string]any{}, least), Living(keyInUse))
		if err != nil {
			t.Fatal(err)
		}
		files, err := Render(util.CoalesceTables(v, least), Living(keyInUse))
		if err != nil {
			t.Fatal(err)
		}
		got := files["NOTES.txt"]
		if want == "" && got != plain["NOTES.txt"] || !strings.Contains(got, want) {
			t.Errorf("%s\ngot %s\nwant %q", values, got, want)
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
