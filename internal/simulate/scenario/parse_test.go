package scenario_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

const least = `
pods: 3
rate: {limit: 10, window: 1s}
duration: 20s
steadyFrom: 5s
traffic:
- {pods: all, requestsPerSecond: [{at: 0s, value: 30}]}
`

func parse(tb testing.TB, text string) *scenario.Scenario {
	tb.Helper()
	s, err := scenario.Parse("dir/least.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func ptr[T any](v T) *T { return &v }

func TestWhatAFileNeedNotSay(t *testing.T) {
	usual := scenario.Delay{Min: 5 * ms, Max: 20 * ms}
	want := &scenario.Scenario{
		Name: "least", Pods: 3, Single: true,
		Policy: &v1alpha1.QuotaPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Group: "apps", Kind: "Deployment", Name: "scenario"}},
			Limits: []v1alpha1.Limit{{Name: "rate", Rates: []v1alpha1.Rate{
				{Limit: 10, Window: &v1alpha1.Duration{Duration: time.Second}}}}},
			Failure: &v1alpha1.Failure{StaleAfter: &v1alpha1.Duration{Duration: 200 * ms}, FallbackFloor: ptr(0.5)},
		},
		Duration: 20 * time.Second, SteadyFrom: 5 * time.Second, Runs: 1, Seed: 1, Arrivals: scenario.Poisson,
		Traffic: []scenario.Source{{
			Pods: []int{0, 1, 2}, Weights: []float64{1, 1, 1}, Rate: []scenario.Step{{At: 0, Value: 30}}, Batch: 1,
		}},
		Network: scenario.Network{Uplink: usual, Downlink: usual, TailProbability: 0.002, TailMax: 100 * ms},
		Timing:  scenario.Timing{Flush: 50 * ms, Tick: 25 * ms, IdleTick: 100 * ms, StaleAfter: 200 * ms, FallbackFloor: 0.5},
	}
	if got := parse(t, least); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPartsOfWhatIsUsual(t *testing.T) {
	s := parse(t, least+"network: {uplink: {max: 50ms}, ack: {max: 1ms}, tail: {max: 0s}}\ntiming: {tick: 300ms}\n")
	usual := parse(t, least)
	usual.Network.Uplink.Max, usual.Network.Ack, usual.Network.TailMax = 50*ms, &scenario.Delay{Max: ms}, 0
	usual.Timing.Tick, usual.Timing.IdleTick = 300*ms, 300*ms // an idle owner is no faster than a busy one
	if !reflect.DeepEqual(s, usual) {
		t.Errorf("got  %+v\nwant %+v", s, usual)
	}
}

// The scenarios that weir is held to, and this package's own, are files that read and write back.
func TestFilesReadAndWriteBack(t *testing.T) {
	ours, _ := filepath.Glob("testdata/*.yaml")
	held, _ := filepath.Glob("../../../test/scenarios/*.yaml")
	if len(ours) == 0 || len(held) < 30 {
		t.Fatalf("%d and %d files", len(ours), len(held))
	}
	for _, path := range slices.Concat(ours, held) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(path, data)
		if err != nil {
			t.Error(err)
			continue
		}
		roundTrip(t, s)
	}
}

// roundTrip checks that what Marshal writes reads equal, and returns it.
func roundTrip(tb testing.TB, s *scenario.Scenario) []byte {
	tb.Helper()
	text, err := s.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	again, err := scenario.Parse("again.yaml", text)
	if err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(again, s) {
		tb.Fatalf("%s\nreads  %+v\nwas    %+v", text, again, s)
	}
	return text
}
