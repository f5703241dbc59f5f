package scenario_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// Random scenarios are files that could have been written, of the kinds that they are said to be.
func TestRandomScenarios(t *testing.T) {
	batches, repeats := 0, 0
	all := scenario.Random(7, 400)
	for _, s := range all {
		roundTrip(t, s)
		src, rate := &s.Traffic[0], s.Policy.Limits[0].Rates[0]
		if n := src.Requests(s.Duration); n > 385_000 || n < 20 {
			t.Errorf("%s: %.0f requests", s.Name, n)
		}
		window := rate.Window.Duration
		if s.Pods < 2 || s.Pods > 300 || rate.Limit < 20 || rate.Limit > 10_000 || window < time.Second || window > 10*time.Second {
			t.Errorf("%s: %d pods, %d in %v", s.Name, s.Pods, rate.Limit, window)
		}
		if s.Duration > 30*time.Second || s.Duration < 2*window || s.SteadyFrom < window || s.SteadyFrom > s.Duration/2 {
			t.Errorf("%s: %v, steady from %v, windows of %v", s.Name, s.Duration, s.SteadyFrom, window)
		}
		if src.Batch > 1 {
			batches++
		}
		if src.Repeat > 0 {
			repeats++
		}
	}
	if batches < 70 || batches > 130 || repeats < 160 || repeats > 240 {
		t.Errorf("of 400: %d in batches, %d square waves", batches, repeats)
	}
	if !reflect.DeepEqual(scenario.Random(7, 3), all[:3]) {
		t.Error("another draw of the same seed differs")
	}
	if reflect.DeepEqual(scenario.Random(8, 1)[0].Traffic, all[0].Traffic) {
		t.Error("another seed draws the same")
	}
}

func TestAScenarioAsAFile(t *testing.T) {
	data, err := os.ReadFile("testdata/every-field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("f", data)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "written/every-field.yaml", roundTrip(t, s))
	golden(t, "written/random.yaml", roundTrip(t, scenario.Random(1, 1)[0]))
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/invalid/*.yaml", "../../../test/scenarios/S*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, "pods=3")
		}
	}
	f.Add([]byte(least), "traffic[0].requestsPerSecond[0]={at: 0s, value: 1e-300}")
	f.Add([]byte(traffic), "policy={client: [{source: Header, name: a}], limits: [{name: a, rates: [{limit: 5, window: 1s}]}]}")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		var sets []scenario.Assignment
		if a, err := scenario.ParseAssignment(set); err == nil {
			sets = append(sets, a)
		}
		s, err := scenario.ParseWith("f", data, sets)
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Fatalf("a scenario beside an error, or no text: %v", err)
			}
			return
		}
		roundTrip(t, s)
		compiles(t, s)
	})
}
