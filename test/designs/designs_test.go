package designs

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// seeds of the runs that each assertion must hold for.
const seeds = 5

func load(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	file := filepath.Join("..", "scenarios", name+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, file, string(data))
}

func parse(t *testing.T, file, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func kind(t *testing.T, name string) Kind {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no design %q", name)
	return Kind{}
}

// each runs a scenario on a design with each seed.
func each(t *testing.T, scenario, design string, check func(t *testing.T, r *measure.Rate)) {
	t.Helper()
	s, k := load(t, scenario), kind(t, design)
	t.Run(scenario+" "+design, func(t *testing.T) {
		for seed := range uint64(seeds) {
			r, err := Run(s, k, seed+1)
			if err != nil {
				t.Fatal(err)
			}
			check(t, &r.Rates[0])
		}
	})
}

// fullest fill of the window in [from, to), in limits.
func fullest(r *measure.Rate, from, to time.Duration) float64 {
	most := 0.0
	for i, fill := range r.Series.Window {
		if at := time.Duration(i) * r.Series.Bin; at >= from && at < to {
			most = max(most, fill)
		}
	}
	return most
}

// The harness itself: what decides without delay or loss is what the measures call exact.
func TestExactIsExact(t *testing.T) {
	for _, name := range []string{"S1", "S6", "S10b", "S11"} {
		each(t, name, "central exact", func(t *testing.T, r *measure.Rate) {
			if r.Over > 0 || math.Abs(r.Under) > 1e-9 || r.FalseDenials > 0 {
				t.Errorf("over %v %%, under %v %%, false denials %v %%", r.Over, r.Under, r.FalseDenials)
			}
		})
	}
}

// All blocked pods open together, so that the window overflows again each time it has emptied.
func TestFlagsOvershootAgainEachWindow(t *testing.T) {
	each(t, "S1", "block flags", func(t *testing.T, r *measure.Rate) {
		if r.Under > -20 || r.Under < -80 {
			t.Errorf("under %v %%: not one overshoot a window", r.Under)
		}
		for from := 2 * time.Second; from < 14*time.Second; from += 2 * time.Second {
			if f := fullest(r, from, from+2*time.Second); f < 1.2 {
				t.Errorf("from %v: the fullest window held %.2f of the limit: no overshoot", from, f)
			}
		}
	})
}

// What flags are good at: while the limit is not reached nobody is refused, however uneven the traffic.
func TestFlagsRefuseNobodyBelowTheLimit(t *testing.T) {
	for _, name := range []string{"S6b", "S10b"} {
		each(t, name, "block flags", func(t *testing.T, r *measure.Rate) {
			if r.Admitted != r.Offered {
				t.Errorf("%v of %v were admitted", r.Admitted, r.Offered)
			}
		})
	}
}

// A flag does not expire: what it last said holds while the aggregator is away.
func TestFlagsKeepTheirLastWord(t *testing.T) {
	each(t, "O3", "block flags", func(t *testing.T, r *measure.Rate) {
		if r.OutageOver < 150 {
			t.Errorf("unblocked: %v %% over during the outage, of 200", r.OutageOver)
		}
	})
	each(t, "O2", "block flags", func(t *testing.T, r *measure.Rate) {
		if open, shut := r.OutageOver > 150, r.OutageUnder > 90; !open && !shut {
			t.Errorf("%v %% over, %v %% under during the outage: neither open nor shut", r.OutageOver, r.OutageUnder)
		}
	})
}

// Once a second is late by one to two seconds, for which everything passes; then it holds the mean.
func TestDropRatioTakesOneToTwoSeconds(t *testing.T) {
	each(t, "S1", "drop ratio, 1 s", func(t *testing.T, r *measure.Rate) {
		if r.EnforceMillis < 500 || r.EnforceMillis > 2200 {
			t.Errorf("enforced after %v ms", r.EnforceMillis)
		}
		if r.Over < 300 || math.Abs(r.Under) > 10 {
			t.Errorf("over %v %%, under %v %%: not the whole crowd at first and the limit later", r.Over, r.Under)
		}
	})
	each(t, "S1", "drop ratio, quick", func(t *testing.T, r *measure.Rate) {
		if r.EnforceMillis < 200 || r.EnforceMillis > 1000 || r.Over < 80 {
			t.Errorf("enforced after %v ms, over %v %%", r.EnforceMillis, r.Over)
		}
	})
}

// A rate cannot express a quota: of bursts shorter than the window, what the window would hold is refused.
func TestDropRatioLosesBursts(t *testing.T) {
	s := load(t, "W1")
	r, err := Run(s, kind(t, "drop ratio, quick"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if u := r.Rates[0].Under; u < 30 {
		t.Errorf("under %v %%", u)
	}
}

// Each window of the clock holds the limit, so that a sliding one may hold twice as much across a boundary, and no more.
func TestFixedWindowAdmitsUpToTwice(t *testing.T) {
	worst := math.Inf(-1)
	each(t, "S5", "fixed window", func(t *testing.T, r *measure.Rate) {
		if r.Over > 100 {
			t.Errorf("over %v %%: more than twice", r.Over)
		}
		worst = max(worst, r.Over)
	})
	each(t, "S1", "fixed window", func(t *testing.T, r *measure.Rate) {
		worst = max(worst, r.Over)
		if f := fullest(r, 4*time.Second, 14*time.Second); f > 1.2 {
			t.Errorf("steady load: a window of %v limits", f)
		}
	})
	if worst < 80 {
		t.Errorf("worst over %v %%: no boundary met a front", worst)
	}
}

// The price of asking a store: a call a request, and what it says while it is away.
func TestCentralCallsAtEachRequest(t *testing.T) {
	s := load(t, "O3")
	for _, name := range []string{"fixed window", "central exact"} {
		r, err := Run(s, kind(t, name), 1)
		if err != nil {
			t.Fatal(err)
		}
		if calls := r.UsageMessages * s.Duration.Seconds(); math.Abs(calls-float64(r.Requests)) > 0.5 {
			t.Errorf("%s: %v calls for %d requests", name, calls, r.Requests)
		}
		if over := r.Rates[0].OutageOver; over < 150 {
			t.Errorf("%s: %v %% over while the store is away", name, over)
		}
	}
}

func TestSameSeedSameArrivals(t *testing.T) {
	s := load(t, "S6")
	var first *measure.Run
	for _, k := range Kinds() {
		a, err := Run(s, k, 7)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Run(s, k, 7)
		if err != nil {
			t.Fatal(err)
		}
		if x, y := fmt.Sprint(a.Rates[0].Values), fmt.Sprint(b.Rates[0].Values); x != y || a.UsageMessages != b.UsageMessages {
			t.Errorf("%s: two runs of one seed differ: %s, %s", k.Name, x, y)
		}
		if first == nil {
			first = a
		}
		if !reflect.DeepEqual(a.Rates[0].Series.Offered, first.Rates[0].Series.Offered) {
			t.Errorf("%s sees other arrivals than %s", k.Name, Kinds()[0].Name)
		}
	}
	other, err := Run(s, Kinds()[0], 8)
	if err != nil {
		t.Fatal(err)
	}
	if other.Requests == first.Requests {
		t.Error("another seed gives the same number of requests")
	}
}

func TestRefusesWhatItCannotRun(t *testing.T) {
	const tail = "pods: 2\nduration: 2s\nsteadyFrom: 1s\ntraffic:\n- {pods: all, requestsPerSecond: [{at: 0s, value: 10}]}\n"
	for want, text := range map[string]string{
		"SlidingWindow": "name: a\nrate: {limit: 10, window: 1s, algorithm: TokenBucket}\n" + tail,
		"rate":          "name: a\npolicy: {limits: [{name: x, rates: [{limit: 10, window: 1s}]}]}\n" + tail,
		"OwnerMoves":    "name: a\nrate: {limit: 10, window: 1s}\n" + tail + "faults:\n- {kind: OwnerMoves, at: 1s}\n",
	} {
		_, err := Run(parse(t, "a.yaml", text), Kinds()[0], 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v", want, err)
		}
	}
}
