package measure

// Summary is a set of runs of one scenario. It is not changed once made, but for the names.
type Summary struct {
	// Name and Title of the scenario, for the caller to fill in.
	Name, Title string
	// Single: the scenario names one rate and no policy, so that JSON has its measures at the top.
	Single bool
	// Seed of the first run.
	Seed  uint64
	Runs  int
	Rates []RateSummary
	// Sources of traffic, in the scenario's order.
	Sources []SourceSummary
	// Requests of a run, mean.
	Requests float64
	// A second.
	UsageMessages, UsageEntries, DecisionRecords, DecisionBatches Stat
}

// RateSummary is one rate over the runs. The worst run is that with the largest value (Jain: the smallest).
type RateSummary struct {
	Limit, Title string
	Over, Under, OutageOver, OutageUnder,
	EnforceMillis, FalseDenials, Jain Stat
	// Means: units of a run, and counters.
	Offered, Admitted, Counters float64
}

// SourceSummary is one source of traffic over the runs: percent of its requests.
type SourceSummary struct {
	Name                  string
	Refused, ExactRefused Stat
}

// Summarize sums up runs of one scenario, whose rates come in the same order.
func Summarize(runs []*Run) *Summary {
	s := &Summary{Runs: len(runs)}
	rates := 0
	for i, r := range runs {
		rates = max(rates, len(r.Rates))
		if i == 0 || r.Seed < s.Seed {
			s.Seed = r.Seed
		}
	}
	of := func(value func(*Run) float64) Stat { return newStat(collect(runs, value), largest) }
	s.Requests = of(func(r *Run) float64 { return float64(r.Requests) }).Mean
	s.UsageMessages = of(func(r *Run) float64 { return r.UsageMessages })
	s.UsageEntries = of(func(r *Run) float64 { return r.UsageEntries })
	s.DecisionRecords = of(func(r *Run) float64 { return r.DecisionRecords })
	s.DecisionBatches = of(func(r *Run) float64 { return r.DecisionBatches })
	for i := range rates {
		s.Rates = append(s.Rates, summarizeRate(ratesAt(runs, i)))
	}
	s.Sources = summarizeSources(runs)
	return s
}

// summarizeSources of runs of one scenario, which have the same ones.
func summarizeSources(runs []*Run) []SourceSummary {
	if len(runs) == 0 {
		return nil
	}
	var out []SourceSummary
	for i, s := range runs[0].Sources {
		percent := func(part func(Source) uint64) Stat {
			return newStat(collect(runs, func(r *Run) float64 {
				return 100 * float64(part(r.Sources[i])) / float64(r.Sources[i].Offered) // NaN: nothing came
			}), largest)
		}
		out = append(out, SourceSummary{
			Name:         s.Name,
			Refused:      percent(func(s Source) uint64 { return s.Refused }),
			ExactRefused: percent(func(s Source) uint64 { return s.ExactRefused }),
		})
	}
	return out
}

func summarizeRate(rates []*Rate) RateSummary {
	of := func(value func(*Rate) float64) Stat { return newStat(collect(rates, value), largest) }
	return RateSummary{
		Limit: rates[0].Limit, Title: rates[0].Title,
		Over:          of(func(r *Rate) float64 { return r.Over }),
		Under:         of(func(r *Rate) float64 { return r.Under }),
		OutageOver:    of(func(r *Rate) float64 { return r.OutageOver }),
		OutageUnder:   of(func(r *Rate) float64 { return r.OutageUnder }),
		EnforceMillis: of(func(r *Rate) float64 { return r.EnforceMillis }),
		FalseDenials:  of(func(r *Rate) float64 { return r.FalseDenials }),
		Jain:          newStat(collect(rates, func(r *Rate) float64 { return r.Jain }), smallest),
		Offered:       of(func(r *Rate) float64 { return r.Offered }).Mean,
		Admitted:      of(func(r *Rate) float64 { return r.Admitted }).Mean,
		Counters:      of(func(r *Rate) float64 { return float64(r.Counters) }).Mean,
	}
}

// ratesAt are the runs' rates at index i.
func ratesAt(runs []*Run, i int) []*Rate {
	var out []*Rate
	for _, r := range runs {
		if i < len(r.Rates) {
			out = append(out, &r.Rates[i])
		}
	}
	return out
}

func collect[T any](from []T, value func(T) float64) []float64 {
	out := make([]float64, len(from))
	for i, x := range from {
		out[i] = value(x)
	}
	return out
}
