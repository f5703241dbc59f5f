package system

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/explain"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// explained asks what a check of a request to /explained by a client would answer.
func (f *fronts) explained(t *testing.T, client string) (a explain.Response) {
	t.Helper()
	code, out := f.Tool("weir", "explain", "--json", "--sidecar", f.pod.Admin, "--path", "/explained?x=1", "--header", "x-api-key: "+client)
	if code != 0 {
		t.Fatalf("weir explain: exit code %d, %s", code, out)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return a
}

func testExplain(t *testing.T, f *fronts) {
	for range 5 { // more often than the limit allows
		if a := f.explained(t, "x"); !a.Allowed || len(a.Counters) != 1 || a.Counters[0].Limit != "explained" {
			t.Fatalf("explained as %+v", a)
		}
	}
	for range 3 {
		f.expect(t, f.joined, 200, "GET", "/explained", "x-api-key", "x")
	}
	f.counters(t, "explained", 3)
	a := f.explained(t, "x")
	if a.Allowed || a.Status != 429 || a.RefusedBy != "shop/cases/explained" {
		t.Errorf("used up, yet explained as %+v", a)
	}
	c := a.Counters[0]
	if c.Total == nil || *c.Total != 3 || c.Amount != 3 || c.RetryAfterMS <= 0 || strings.Contains(strings.Join(c.CountedBy, " "), "x-api-key x") {
		t.Errorf("its counter is %+v", c)
	}
	if a := f.explained(t, "y"); !a.Allowed {
		t.Errorf("another client is explained as %+v", a)
	}
	f.counters(t, "explained", 3)

	code, out := f.Tool("weir", "explain", "--sidecar", f.pod.Admin, "--path", "/explained", "--header", "x-api-key: x")
	if code != 0 || !strings.Contains(out, "refused with 429 by shop/cases/explained") {
		t.Errorf("in words, exit code %d: %s", code, out)
	}
}

// policyFile writes a policy beside the test's other files and returns its path.
func (f *fronts) policyFile(t *testing.T, name string, perHour int) string {
	t.Helper()
	file := filepath.Join(f.Dir, name+".yaml")
	f.Must(os.WriteFile(file, []byte(fmt.Sprintf(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: %s, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  limits: [{name: applied, when: {paths: [{type: Prefix, value: /applied}]}, rates: [{limit: %d, window: 1h}]}]
`, name, perHour)), 0o600))
	return file
}

func testValidate(t *testing.T, f *fronts) {
	good, bad := f.policyFile(t, "good", 1), f.policyFile(t, "bad", 0)
	if code, out := f.Tool("weir", "validate", good); code != 0 || !strings.Contains(out, "shop/good is valid") {
		t.Errorf("a valid file: exit code %d, %s", code, out)
	}
	code, out := f.Tool("weir", "validate", good, bad)
	if code != 1 || !strings.Contains(out, bad+":6") || !strings.Contains(out, "spec.limits[0].rates[0].limit") {
		t.Errorf("a limit of 0: exit code %d, %s", code, out)
	}
	if code, _ := f.Tool("weir", "validate"); code != 2 {
		t.Errorf("no file: exit code %d, want 2", code)
	}
}

func (f *fronts) apply(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	return f.Tool("weir", append([]string{"apply", "--identity-key-file", f.Key, "--kafka-brokers", f.Kafka.Addr()}, args...)...)
}

// untilHourly waits until answers to /applied carry an hour's quota; 0: none.
func (f *fronts) untilHourly(t *testing.T, perHour int) {
	t.Helper()
	parts.Eventually(t, world.Patience, fmt.Sprintf("%d an hour in force", perHour), func() error {
		got := f.Send(f.joined, "GET", "/applied").Header.Get("ratelimit-policy")
		if perHour == 0 && got != "" || perHour > 0 && !strings.Contains(got, fmt.Sprintf(";q=%d;w=3600", perHour)) {
			return fmt.Errorf("the answer says %q", got)
		}
		return nil
	})
}

// A policy is made, changed and deleted without a file on an aggregator. Of one name the file's goes
// first, and whoever applies is told.
func testApply(t *testing.T, f *fronts) {
	if code, out := f.apply(t, "-f", f.policyFile(t, "applied", 0)); code != 1 || !strings.Contains(out, "nothing is published") {
		t.Errorf("an invalid policy: exit code %d, %s", code, out)
	}
	for _, perHour := range []int{100_000, 200_000} {
		if code, out := f.apply(t, "-f", f.policyFile(t, "applied", perHour)); code != 0 || !strings.Contains(out, "cli/shop/applied published") {
			t.Fatalf("apply: exit code %d, %s", code, out)
		}
		f.untilHourly(t, perHour)
	}
	f.conflict(t)
	if code, out := f.apply(t, "--delete", "-f", f.policyFile(t, "applied", 1)); code != 0 || !strings.Contains(out, "cli/shop/applied deleted") {
		t.Errorf("delete: exit code %d, %s", code, out)
	}
	f.untilHourly(t, 0)
}

// conflict has the aggregator publish a file of the name that was applied, and takes it away again.
func (f *fronts) conflict(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(f.policyFile(t, "applied", 300_000))
	f.Must(err)
	f.World.Write("applied.yaml", string(text))
	f.untilHourly(t, 300_000)
	code, out := f.apply(t, "-f", f.policyFile(t, "applied", 400_000))
	if code != 0 || !strings.Contains(out, "file/shop/applied is in force, so cli/shop/applied is not") {
		t.Errorf("a conflict: exit code %d, %s", code, out)
	}
	parts.Eventually(t, world.Patience, "the conflict shown in readiness", func() error {
		_, body, err := world.Get("http://" + f.pod.Admin + "/readyz")
		if err == nil && !strings.Contains(body, "shop/applied") {
			err = fmt.Errorf("readiness is %s", body)
		}
		return err
	})
	f.untilHourly(t, 300_000)
	f.Must(os.Remove(filepath.Join(f.Policies, "applied.yaml")))
	f.untilHourly(t, 400_000)
}

func testHealthchecks(t *testing.T, f *fronts) {
	free, err := parts.FreePort()
	f.Must(err)
	nobody := fmt.Sprintf("tcp://127.0.0.1:%d", free)
	for program, admin := range map[string]string{"weir-sidecar": f.pod.Admin, "weir-aggregator": f.Owners[0].Admin} {
		for _, more := range [][]string{nil, {"--live"}} {
			if code, out := f.Tool(program, append([]string{"healthcheck", "--admin-address", "tcp://" + admin}, more...)...); code != 0 {
				t.Errorf("%s healthcheck %v: exit code %d, %s", program, more, code, out)
			}
			if code, _ := f.Tool(program, append([]string{"healthcheck", "--admin-address", nobody}, more...)...); code != 1 {
				t.Errorf("%s healthcheck %v with nobody there: exit code %d", program, more, code)
			}
		}
	}
}
