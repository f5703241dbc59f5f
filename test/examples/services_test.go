package examples

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

const (
	servicesPolicy = "examples/services/base/policy.yaml"
	servicesLimit  = 5
)

// languages are those of examples/services, what runs each, and what it answers.
func languages() []struct{ name, runtime, answer string } {
	return []struct{ name, runtime, answer string }{
		{"go", "go", "hello from Go\n"},
		{"python", "python3", "hello from Python\n"},
		{"node", "node", "hello from Node\n"},
	}
}

// answer is what a client sees.
type answer struct {
	status int
	header http.Header
	body   string
}

func ask(url, client string) (answer, error) {
	r, err := http.NewRequest(http.MethodGet, url+"/", nil)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("x-api-key", client)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body)}, err
}

func (e *example) ask(url, client string) answer {
	e.t.Helper()
	a, err := ask(url, client)
	if err != nil {
		e.t.Fatal(err)
	}
	return a
}

// refused wants the quota's refusal, and that it names the limit.
func refused(t *testing.T, a answer, policy string) {
	t.Helper()
	var problem struct {
		Status        int
		Policy, Limit string
	}
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	if a.status != http.StatusTooManyRequests || problem.Status != a.status || problem.Policy != policy || problem.Limit != "each-client" {
		t.Errorf("refused with %d %+v", a.status, problem)
	}
	if a.header.Get("retry-after") == "" || a.header.Get("content-type") != "application/problem+json" || a.header.Get("ratelimit-policy") == "" {
		t.Errorf("refused with header %v", a.header)
	}
}

// In each language, the service's own answer passes until the quota is used up, for each client.
func TestEachServiceHasItsQuota(t *testing.T) {
	policy := anHour(t, servicesPolicy, "10s")
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			if _, err := exec.LookPath(l.runtime); err != nil {
				t.Skipf("%s is not on the PATH", l.runtime)
			}
			e := start(t, "-policies", policy, l.name)
			url := e.urls[l.name]
			for n := range servicesLimit {
				if a := e.ask(url, "a"); a.status != http.StatusOK || a.body != l.answer {
					t.Fatalf("request %d: %d %q, want %q", n+1, a.status, a.body, l.answer)
				}
			}
			refused(t, e.ask(url, "a"), "hello/hello")
			if a := e.ask(url, "b"); a.status != http.StatusOK {
				t.Errorf("another client: %d", a.status)
			}
			e.end()
		})
	}
}

// The languages together have one quota: what a client uses up at one is gone at the others.
func TestServicesOfAllLanguagesShareOneQuota(t *testing.T) {
	args := []string{"-policies", anHour(t, servicesPolicy, "10s")}
	for _, l := range languages() {
		if _, err := exec.LookPath(l.runtime); err != nil {
			t.Logf("without %s, which is not on the PATH", l.runtime)
			continue
		}
		args = append(args, l.name)
	}
	e := start(t, args...)
	if !strings.Contains(e.said, "HTTP/1.1 429 Too Many Requests") || !strings.Contains(e.said, "retry-after: ") {
		t.Errorf("no refusal is shown:\n%s", e.said)
	}
	passed, refusedAt := 0, map[string]bool{}
	for n := 0; n < 1000 && len(refusedAt) < len(e.urls); n++ {
		for name, url := range e.urls {
			switch a := e.ask(url, "a"); a.status {
			case http.StatusOK:
				passed++
			case http.StatusTooManyRequests:
				refusedAt[name] = true
			default:
				t.Fatalf("%s: %d", name, a.status)
			}
		}
	}
	// Before a pod hears of the others' it admits its part and two more, begun ones whole; alone it would admit all.
	most := len(e.urls) * min(servicesLimit, (servicesLimit+len(e.urls)-1)/len(e.urls)+2)
	if len(refusedAt) < len(e.urls) || passed < servicesLimit || passed > most {
		t.Errorf("%d passed, want %d to %d; refused at %v", passed, servicesLimit, most, refusedAt)
	}
	e.end()
}

func TestThePlainEnvoyRuns(t *testing.T) {
	e := start(t, "-policies", anHour(t, "examples/policies/each-client.yaml", "1s"), "envoy")
	if !strings.Contains(e.said, "  100 × 200  hello from Go\n    1 × 429\n") {
		t.Errorf("not 100 requests and a refusal:\n%s", e.said)
	}
	refused(t, e.ask(e.urls["go"], "me"), "shop/each-client")
	e.end()
}

// A service that does not start is named, with what it said.
func TestAServiceThatEndsIsNamed(t *testing.T) {
	out, err := run(t, "--", "sh", "-c", "echo no such port >&2; exit 3").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"own ended by itself", "exit status 3", "no such port"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestWhatIsNotBuiltIsSaid(t *testing.T) {
	out, err := run(t, "-bin", t.TempDir(), "go").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "make build") {
		t.Errorf("%v\n%s", err, out)
	}
}
