package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// MarshalJSON writes one object: every measure as its mean over the runs, with _worst and, from two runs on, _sd
// beside it. Measures that do not apply are left out. With a policy, `limits` has an object a rate.
func (s Summary) MarshalJSON() ([]byte, error) {
	o := new(object)
	o.value("name", s.Name)
	o.value("title", s.Title)
	o.value("seed", s.Seed)
	o.value("runs", s.Runs)
	o.number("requests", s.Requests)
	single := s.Single && len(s.Rates) == 1
	if single {
		s.Rates[0].measures(o)
	}
	o.stat("usage_messages_per_second", s.UsageMessages)
	o.stat("usage_entries_per_second", s.UsageEntries)
	o.stat("decision_records_per_second", s.DecisionRecords)
	o.stat("decision_batches_per_second", s.DecisionBatches)
	if !single {
		o.value("limits", append([]RateSummary{}, s.Rates...))
	}
	if len(s.Sources) > 1 {
		o.value("sources", s.Sources)
	}
	return o.close()
}

// MarshalJSON writes the measures of one rate, with the limit's name and the rate in words.
func (r RateSummary) MarshalJSON() ([]byte, error) {
	o := new(object)
	o.value("limit", r.Limit)
	o.value("rate", r.Title)
	r.measures(o)
	return o.close()
}

// MarshalJSON writes what part of a source's requests was refused, and would have been by an exact limiter.
func (s SourceSummary) MarshalJSON() ([]byte, error) {
	o := new(object)
	o.value("source", s.Name)
	o.stat("refused_percent", s.Refused)
	o.stat("exact_refused_percent", s.ExactRefused)
	return o.close()
}

func (r *RateSummary) measures(o *object) {
	o.stat("over_percent", r.Over)
	o.stat("under_percent", r.Under)
	o.stat("outage_over_percent", r.OutageOver)
	o.stat("outage_under_percent", r.OutageUnder)
	o.stat("enforce_ms", r.EnforceMillis)
	o.stat("false_denials_percent", r.FalseDenials)
	o.stat("jain", r.Jain)
	o.number("offered_units", r.Offered)
	o.number("admitted_units", r.Admitted)
	o.number("counters", r.Counters)
}

// object writes a JSON object with its keys in the order given.
type object struct {
	text []byte
	err  error
}

func (o *object) value(key string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		if o.err == nil {
			o.err = fmt.Errorf("%s: %w", key, err)
		}
		return
	}
	o.raw(key, text)
}

func (o *object) raw(key string, text []byte) {
	o.text = append(o.text, separator(o.text))
	o.text = strconv.AppendQuote(o.text, key)
	o.text = append(append(o.text, ':'), text...)
}

func separator(text []byte) byte {
	if len(text) == 0 {
		return '{'
	}
	return ','
}

func (o *object) stat(key string, s Stat) {
	o.number(key, s.Mean)
	o.number(key+"_worst", s.Worst)
	o.number(key+"_sd", s.Sd)
}

// number writes v to 6 significant digits, and nothing if it is none.
func (o *object) number(key string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	o.raw(key, strconv.AppendFloat(nil, round(v), 'f', -1, 64))
}

// round to 6 significant digits; what is next to nothing, which sums leave, is 0.
func round(v float64) float64 {
	if math.Abs(v) < 1e-9 {
		return 0
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v
	}
	return short
}

func (o *object) close() ([]byte, error) {
	if len(o.text) == 0 {
		o.text = append(o.text, '{')
	}
	return append(o.text, '}'), o.err
}
