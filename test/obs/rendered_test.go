package obs

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/test/charts"
)

// render is what the chart makes with the values of its monitoring.
func render(t *testing.T, values string) charts.Files {
	t.Helper()
	all := map[string]any{}
	text := "kafka: {brokers: ['kafka:9092']}\nredis: {addresses: ['redis:6379']}\nidentity: {existingSecret: weir-identity}\nmonitoring: " + values
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	files, err := charts.Render(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// objects of a kind in a file; a field that the operator's types do not have is an error.
func objects[T any](t *testing.T, text, kind string) (all []T) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		if !strings.Contains(document, "\nkind: "+kind+"\n") {
			continue
		}
		var o T
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		all = append(all, o)
	}
	return all
}

func rules(t *testing.T, values string) map[string]monitoring.Rule {
	t.Helper()
	out := map[string]monitoring.Rule{}
	for _, o := range objects[monitoring.PrometheusRule](t, render(t, values)["prometheusrule.yaml"], "PrometheusRule") {
		for _, g := range o.Spec.Groups {
			for _, r := range g.Rules {
				out[r.Alert] = r
			}
		}
	}
	return out
}

func TestTheChartHandsAlertsOnAsTheyAre(t *testing.T) {
	got := rules(t, `{prometheusRule: {enabled: true}}`)
	all := alerts(t)
	if len(got) != len(all) {
		t.Errorf("%d alerts are rendered, of %d", len(got), len(all))
	}
	for _, a := range all {
		r := got[a.Alert]
		pause := ""
		if r.For != nil {
			pause = string(*r.For)
		}
		if r.Expr.StrVal != a.Expr || pause != a.For || !maps.Equal(r.Labels, a.Labels) || !maps.Equal(r.Annotations, a.Annotations) {
			t.Errorf("%s is rendered as %+v", a.Alert, r)
		}
	}
}

func TestAlertsAreLeftOutAndLabelledByValues(t *testing.T) {
	got := rules(t, `{prometheusRule: {enabled: true, disabled: [WeirNoPolicy], alertLabels: {team: platform, severity: mine}}}`)
	if _, there := got["WeirNoPolicy"]; there || len(got) != len(alerts(t))-1 {
		t.Errorf("%d alerts, WeirNoPolicy among them: %v", len(got), there)
	}
	want := map[string]string{"team": "platform", "severity": "warning"}
	if l := got["WeirRedisAway"].Labels; !maps.Equal(l, want) {
		t.Errorf("labels %v, want %v: an alert's own hold", l, want)
	}
}

func TestNothingIsMadeForOthersUnasked(t *testing.T) {
	files := render(t, `{}`)
	for _, name := range []string{"prometheusrule.yaml", "podmonitor.yaml", "servicemonitor.yaml", "dashboard.yaml"} {
		if text := strings.TrimSpace(files[name]); text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// kept applies a monitor's relabelling to a container's port, and returns its job.
func kept(t *testing.T, configs []monitoring.RelabelConfig, container string) (job string, keep bool) {
	t.Helper()
	b := labels.NewBuilder(labels.FromStrings("job", "by/default", "__meta_kubernetes_pod_container_name", container))
	for _, c := range configs {
		r := relabel.DefaultRelabelConfig
		r.Action, r.TargetLabel = relabel.Action(strings.ToLower(c.Action)), c.TargetLabel
		for _, l := range c.SourceLabels {
			r.SourceLabels = append(r.SourceLabels, model.LabelName(l))
		}
		if c.Regex != "" {
			r.Regex = relabel.MustNewRegexp(c.Regex)
		}
		if c.Replacement != nil {
			r.Replacement = *c.Replacement
		}
		if err := r.Validate(model.UTF8Validation); err != nil {
			t.Fatal(err)
		}
		if !relabel.ProcessBuilder(b, &r) {
			return "", false
		}
	}
	return b.Labels().Get("job"), true
}

func TestPodMonitorsCollectFromTheirContainerAlone(t *testing.T) {
	files := render(t, `{podMonitor: {enabled: true, interval: 7s, labels: {release: kps}}}`)
	monitors := objects[monitoring.PodMonitor](t, files["podmonitor.yaml"], "PodMonitor")
	if len(monitors) != 2 {
		t.Fatalf("%d PodMonitors", len(monitors))
	}
	for _, m := range monitors {
		e := m.Spec.PodMetricsEndpoints[0]
		if m.Labels["release"] != "kps" || *e.Port != "weir-metrics" || e.Interval != "7s" {
			t.Errorf("%s: labels %v, port %s, interval %s", m.Name, m.Labels, *e.Port, e.Interval)
		}
		if all := m.Spec.NamespaceSelector.Any; all != (m.Name == "weir-sidecar") {
			t.Errorf("%s: in all namespaces: %v", m.Name, all)
		}
		for _, container := range []string{"weir-sidecar", "weir-aggregator", "weir-controller", "orders"} {
			job, keep := kept(t, e.RelabelConfigs, container)
			if keep != (container == m.Name) || keep && job != m.Name {
				t.Errorf("%s: container %s is kept: %v, as job %q", m.Name, container, keep, job)
			}
		}
	}
}

// The controller's metrics are for whom kube-apiserver allows; the monitor finds the Service that is made for it.
func TestTheControllersMonitorShowsPrometheussToken(t *testing.T) {
	files := render(t, `{podMonitor: {enabled: true, serviceAccount: {name: prometheus, namespace: monitoring}}}`)
	text := files["servicemonitor.yaml"]
	m := objects[monitoring.ServiceMonitor](t, text, "ServiceMonitor")[0]
	s := objects[corev1.Service](t, text, "Service")[0]
	for label, value := range m.Spec.Selector.MatchLabels {
		if s.Labels[label] != value {
			t.Errorf("the monitor asks for %s=%s, the Service has %q", label, value, s.Labels[label])
		}
	}
	e := m.Spec.Endpoints[0]
	if job, _ := kept(t, e.RelabelConfigs, "weir-controller"); job != "weir-controller" {
		t.Errorf("job %q", job)
	}
	if e.Scheme == nil || *e.Scheme != "https" || e.BearerTokenFile == "" || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port }) { //nolint:staticcheck // its own token has no other name
		t.Errorf("endpoint %+v, ports %+v", e, s.Spec.Ports)
	}
	who := rbacv1.Subject{Kind: "ServiceAccount", Name: "prometheus", Namespace: "monitoring"}
	if b := objects[rbacv1.ClusterRoleBinding](t, text, "ClusterRoleBinding")[0]; !slices.Contains(b.Subjects, who) || b.RoleRef.Name != "weir-metrics-reader" {
		t.Errorf("Prometheus's ServiceAccount is given no right to read them: %+v", b)
	}
}

func TestTheDashboardIsAConfigMapForGrafana(t *testing.T) {
	files := render(t, `{dashboard: {enabled: true, annotations: {grafana_folder: weir}}}`)
	c := objects[corev1.ConfigMap](t, files["dashboard.yaml"], "ConfigMap")[0]
	if c.Labels["grafana_dashboard"] != "1" || c.Annotations["grafana_folder"] != "weir" {
		t.Errorf("labels %v, annotations %v", c.Labels, c.Annotations)
	}
	b, err := os.ReadFile(chartFiles + "/dashboards/weir.json")
	if err != nil {
		t.Fatal(err)
	}
	if c.Data["weir.json"] != strings.TrimSpace(string(b)) || !json.Valid(b) {
		t.Error("the ConfigMap does not hold the dashboard as it is")
	}
}
