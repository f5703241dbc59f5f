package measure

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

var nan = math.NaN()

func threeRuns() []*Run {
	one := func(seed uint64, over, under, jain, outage float64) *Run {
		return &Run{Seed: seed, Requests: 1000, UsageMessages: 200, UsageEntries: over, DecisionRecords: 40.123456789, DecisionBatches: 40,
			Rates: []Rate{{Limit: "rate", Title: "10/1s", Counters: 1, Values: Values{Over: over, Under: under, OutageOver: outage, OutageUnder: nan,
				EnforceMillis: 12, FalseDenials: 0.1, Offered: 2_500_000, Admitted: 1. / 3, Jain: jain}}}}
	}
	return []*Run{one(8, 2, -3, 1, nan), one(7, 4, -1, 0.9, 5), one(9, 9, -2, 0.8, 7)}
}

func TestASummaryHasMeanWorstAndDeviation(t *testing.T) {
	s := Summarize(threeRuns())
	if s.Seed != 7 || s.Runs != 3 || s.Rates[0].Limit != "rate" || s.Rates[0].Title != "10/1s" {
		t.Errorf("got %+v", s)
	}
	r := s.Rates[0]
	for name, c := range map[string]struct{ got, want Stat }{
		"over":         {r.Over, Stat{5, 9, math.Sqrt((9 + 1 + 16) / 2.)}},
		"under":        {r.Under, Stat{-2, -1, 1}},
		"Jain's index": {r.Jain, Stat{0.9, 0.8, 0.1}},
		"outage over":  {r.OutageOver, Stat{6, 7, math.Sqrt2}}, // of the runs that have one
		"outage under": {r.OutageUnder, Stat{nan, nan, nan}},
		"messages":     {s.UsageMessages, Stat{200, 200, 0}},
	} {
		wantValue(t, name+": mean", c.got.Mean, c.want.Mean)
		wantValue(t, name+": worst", c.got.Worst, c.want.Worst)
		wantValue(t, name+": deviation", c.got.Sd, c.want.Sd)
	}
}

func TestOneRunHasNoDeviationAndNoneNothing(t *testing.T) {
	wantValue(t, "deviation", Summarize(threeRuns()[:1]).Rates[0].Over.Sd, nan)
	if s := Summarize(nil); len(s.Rates) != 0 || s.Runs != 0 {
		t.Errorf("got %+v", s)
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestJSONOfAScenarioWithOneRate(t *testing.T) {
	s := Summarize(threeRuns())
	s.Name, s.Title, s.Single = "S1", `a "step"`, true
	want := `{"name":"S1","title":"a \"step\"","seed":7,"runs":3,"requests":1000,` +
		`"over_percent":5,"over_percent_worst":9,"over_percent_sd":3.60555,` +
		`"under_percent":-2,"under_percent_worst":-1,"under_percent_sd":1,` +
		`"outage_over_percent":6,"outage_over_percent_worst":7,"outage_over_percent_sd":1.41421,` +
		`"enforce_ms":12,"enforce_ms_worst":12,"enforce_ms_sd":0,` +
		`"false_denials_percent":0.1,"false_denials_percent_worst":0.1,"false_denials_percent_sd":0,` +
		`"jain":0.9,"jain_worst":0.8,"jain_sd":0.1,` +
		`"offered_units":2500000,"admitted_units":0.333333,"counters":1,` +
		`"usage_messages_per_second":200,"usage_messages_per_second_worst":200,"usage_messages_per_second_sd":0,` +
		`"usage_entries_per_second":5,"usage_entries_per_second_worst":9,"usage_entries_per_second_sd":3.60555,` +
		`"decision_records_per_second":40.1235,"decision_records_per_second_worst":40.1235,"decision_records_per_second_sd":0,` +
		`"decision_batches_per_second":40,"decision_batches_per_second_worst":40,"decision_batches_per_second_sd":0}`
	if got := marshal(t, s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := marshal(t, *s); got != want {
		t.Errorf("a copy gives\n%s", got)
	}
}

func TestJSONOfAPolicyHasAnObjectARate(t *testing.T) {
	runs := threeRuns()[:1]
	runs[0].Rates = append(runs[0].Rates, Rate{Limit: "daily", Title: "5/Day", Values: Values{Over: nan, Under: nan, OutageOver: nan, OutageUnder: nan,
		EnforceMillis: nan, FalseDenials: nan, Jain: nan}})
	got := marshal(t, Summarize(runs))
	top, _, _ := strings.Cut(got, "limits")
	if !strings.Contains(got, `"limits":[{"limit":"rate","rate":"10/1s","over_percent":2,"over_percent_worst":2,"under_percent":-3,`) ||
		!strings.HasSuffix(got, `{"limit":"daily","rate":"5/Day","offered_units":0,"admitted_units":0,"counters":0}]}`) ||
		strings.Contains(got, "_sd") || strings.Contains(top, "over_percent") {
		t.Error(got)
	}
	if got := marshal(t, Summarize(nil)); got != `{"name":"","title":"","seed":0,"runs":0,"limits":[]}` {
		t.Error(got)
	}
}

func TestNumbersOfJSON(t *testing.T) {
	for in, want := range map[float64]string{
		0: `{"x":0}`, -0.0000000001: `{"x":0}`, 123456.7: `{"x":123457}`, 1e15: `{"x":1000000000000000}`, 0.00012345678: `{"x":0.000123457}`,
		math.Inf(1): `{}`, math.Copysign(0, -1): `{"x":0}`,
	} {
		o := new(object)
		o.number("x", in)
		if got, err := o.close(); err != nil || string(got) != want {
			t.Errorf("%v gives %s, want %s", in, got, want)
		}
	}
}

func ptr(v float64) *float64 { return &v }

func TestAgainstReference(t *testing.T) {
	for name, c := range map[string]struct {
		over   float64
		ref    scenario.Reference
		missed bool
	}{
		"at the reference":                  {8.9, scenario.Reference{OverPercent: ptr(8.9), OverSd: ptr(0.9)}, false},
		"within two deviations":             {10.6, scenario.Reference{OverPercent: ptr(8.9), OverSd: ptr(0.9)}, false},
		"beyond":                            {10.8, scenario.Reference{OverPercent: ptr(8.9), OverSd: ptr(0.9)}, true},
		"better by far":                     {-50, scenario.Reference{OverPercent: ptr(8.9), OverSd: ptr(0.9)}, false},
		"a deviation of 0: 0.5":             {0.65, scenario.Reference{OverPercent: ptr(0.2), OverSd: ptr(0)}, false},
		"a deviation of 0, beyond":          {0.75, scenario.Reference{OverPercent: ptr(0.2), OverSd: ptr(0)}, true},
		"no deviation: 2":                   {1.9, scenario.Reference{OverPercent: ptr(0)}, false},
		"no deviation, beyond 2":            {2.1, scenario.Reference{OverPercent: ptr(0)}, true},
		"no deviation: a quarter":           {66, scenario.Reference{OverPercent: ptr(54)}, false},
		"no deviation, beyond a quarter":    {68, scenario.Reference{OverPercent: ptr(54)}, true},
		"a quarter of a negative reference": {-16, scenario.Reference{OverPercent: ptr(-20)}, false},
		"not measured":                      {nan, scenario.Reference{OverPercent: ptr(5)}, true},
		"nothing to hold":                   {99, scenario.Reference{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Summarize([]*Run{{Rates: []Rate{{Values: Values{Over: c.over}}}}})
			if got := s.Against(&c.ref); (len(got) > 0) != c.missed {
				t.Errorf("got %v", got)
			}
		})
	}
	if got := Summarize(threeRuns()).Against(nil); got != nil {
		t.Errorf("without a reference: %v", got)
	}
}

func TestEveryMeasureOfEveryRateIsHeld(t *testing.T) {
	bad := Values{Over: 90, Under: 91, OutageOver: 92, OutageUnder: nan}
	s := Summarize([]*Run{{Rates: []Rate{{Limit: "a", Title: "1/1s", Values: bad}, {Limit: "b", Values: bad}}}})
	got := s.Against(&scenario.Reference{OverPercent: ptr(8.9), OverSd: ptr(0.9), UnderPercent: ptr(2), UnderSd: ptr(0.1), OutageOverPercent: ptr(10), OutageUnderPercent: ptr(68)})
	want := []string{
		"over_percent is 90, more than 10.7: reference 8.9 + tolerance 1.8 (the larger of 0.5 and 2 sd of 0.9)",
		"under_percent is 91, more than 2.5: reference 2 + tolerance 0.5 (the larger of 0.5 and 2 sd of 0.1)",
		"outage_over_percent is 92, more than 12.5: reference 10 + tolerance 2.5 (the larger of 2 and 25 %)",
		"outage_under_percent was not measured, but the reference gives 68",
	}
	if len(got) != 2*len(want) || got[0].Limit != "a" || got[0].Rate != "1/1s" || got[4].Limit != "b" {
		t.Fatalf("got %v", got)
	}
	for i, m := range got {
		if m.String() != want[i%4] {
			t.Errorf("got  %s\nwant %s", m, want[i%4])
		}
	}
}

// What becomes of each source's requests is told where there are several, beside what an exact limiter would have
// refused.
func TestSourcesAreSummedUpApart(t *testing.T) {
	runs := []*Run{
		{Seed: 1, Sources: []Source{{"abuser", 100, 98, 97}, {"honest", 50, 0, 0}}},
		{Seed: 2, Sources: []Source{{"abuser", 200, 192, 194}, {"honest", 0, 0, 0}}},
	}
	s := Summarize(runs)
	if got := s.Sources[0]; got.Name != "abuser" || got.Refused.Mean != 97 || got.ExactRefused.Worst != 97 {
		t.Errorf("the abuser: %+v", got)
	}
	if got := s.Sources[1].Refused.Mean; got != 0 {
		t.Errorf("of the honest %v %% were refused", got)
	}
	text, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(text), `"sources":[{"source":"abuser","refused_percent":97,`) {
		t.Errorf("%s, %v", text, err)
	}
}
