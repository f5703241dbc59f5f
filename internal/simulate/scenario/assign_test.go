package scenario_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

func assignments(tb testing.TB, texts ...string) []scenario.Assignment {
	tb.Helper()
	var out []scenario.Assignment
	for _, text := range texts {
		a, err := scenario.ParseAssignment(text)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// A field that is set is as one that the file says: written, missing, and in parts of the file that it has not.
func TestFieldsSetAreAsIfWritten(t *testing.T) {
	written := strings.NewReplacer("pods: 3", "pods: 50\nname: other name\nruns: 4", "limit: 10", "limit: 500", "value: 30}", "value: 5}], batch: 4, weights: &w [",
		"]}", strings.Repeat("1, ", 49)+"2]}\nnetwork: {tail: {probability: 0}}\nfaults: [{kind: UsageLoss, probability: 0.1}]").Replace(least)
	written = strings.ReplaceAll(written, "&w ", "")
	want := parse(t, written)
	weights := "traffic[0].weights=[" + strings.Repeat("1, ", 49) + "2]"
	got, err := scenario.ParseWith("least", []byte(least), assignments(t, "name=other name", "runs=3", "runs=4", "pods=50", "rate.limit=500",
		"traffic[0].requestsPerSecond[0].value=5", "traffic[0].batch=4", weights,
		"network.tail.probability=0", "faults=[{kind: UsageLoss}]", "faults[0].probability=0.1"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The same assignments serve many files: one must not leave marks in what the next one gets.
func TestAssignmentsAreNotUsedUp(t *testing.T) {
	sets := assignments(t, "rate={limit: 5, window: 1s}", "rate.limit=6")
	for range 2 {
		if s, err := scenario.ParseWith("f", []byte(least), sets); err != nil || s.Policy.Limits[0].Rates[0].Limit != 6 {
			t.Fatal(s, err)
		}
	}
	only := assignments(t, "rate={limit: 5, window: 2s}")
	s, err := scenario.ParseWith("f", []byte(least), only)
	if err != nil || s.Policy.Limits[0].Rates[0].Limit != 5 || s.Policy.Limits[0].Rates[0].Window.Duration != 2*time.Second {
		t.Fatal(s, err)
	}
}

func TestWhatCannotBeSet(t *testing.T) {
	for text, want := range map[string]string{
		"rate.limt=5":                  "f with rate.limt=5: rate.limt: is not a known field; did you mean limit? known here: limit, window, algorithm, burst, period, timeZone",
		"networks.uplink.min=5ms":      "f with networks.uplink.min=5ms: networks: is not a known field; did you mean network? known here: name, title,",
		"rate.limit=many":              `f with rate.limit=many: rate.limit: want a whole number, got "many"`,
		"pods=0":                       "f with pods=0: pods: is 0; want 1 to 10000",
		"duration=":                    `f with duration=: duration: "" is no duration`,
		"duration=~":                   "f with duration=~: duration: has no value",
		"pods.x=3":                     `f with pods.x=3: pods: has no fields: it is "3"; set it as a whole`,
		"traffic.pods=all":             "f with traffic.pods=all: traffic: has no fields: it is a list; set it as a whole",
		"traffic[1].batch=2":           "f with traffic[1].batch=2: traffic: has 1 items; an index counts from 0",
		"faults[0].at=2s":              "f with faults[0].at=2s: faults: has 0 items",
		"traffic[0][0]=2":              "f with traffic[0][0]=2: traffic[0]: has 0 items",
		"traffic[0].batch=*a":          `"traffic[0].batch=*a": the value is no YAML; quote it: yaml: unknown anchor`,
		"policy.limits=[]":             "f with policy.limits=[]: policy: is given beside rate",
		"traffic[0]={pods: all, x: 1}": "f with traffic[0]={pods: all, x: 1}: traffic[0].x: is not a known field",
	} {
		a, err := scenario.ParseAssignment(text)
		if err == nil {
			_, err = scenario.ParseWith("f", []byte(least), []scenario.Assignment{a})
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func TestWhatIsNoAssignment(t *testing.T) {
	for text, want := range map[string]string{
		"pods":          `"pods": no value; write field=value, such as rate.limit=500`,
		"=3":            `"=3": "" is no field's name`,
		"a..b=3":        `"a..b=3": "" is no field's name`,
		"traffic[x]=3":  `"traffic[x]=3": "traffic[x]" is no field's name; write a path such as rate.limit or traffic[0].batch`,
		"traffic[-1]=3": `"traffic[-1]=3": "traffic[-1]" is no field's name`,
		"title=a: b: c": `"title=a: b: c": the value is no YAML; quote it: yaml: mapping values`,
	} {
		if _, err := scenario.ParseAssignment(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
