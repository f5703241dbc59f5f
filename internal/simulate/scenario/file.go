package scenario

import (
	"reflect"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// file is a scenario as it is written. Fields tagged write:"always" are written even where they are zero.
type file struct {
	Name       string                    `json:"name"`
	Title      string                    `json:"title"`
	Pods       int                       `json:"pods"`
	Rate       *v1alpha1.Rate            `json:"rate"`
	Policy     *v1alpha1.QuotaPolicySpec `json:"policy"`
	Duration   time.Duration             `json:"duration"`
	SteadyFrom time.Duration             `json:"steadyFrom" write:"always"`
	Runs       int                       `json:"runs"`
	Seed       uint64                    `json:"seed"`
	Traffic    []Source                  `json:"traffic"`
	Arrivals   Arrivals                  `json:"arrivals"`
	Network    network                   `json:"network"`
	Timing     Timing                    `json:"timing"`
	Faults     []Fault                   `json:"faults"`
	Reference  *Reference                `json:"reference"`
}

type network struct {
	Uplink   Delay  `json:"uplink"`
	Downlink Delay  `json:"downlink"`
	Ack      *Delay `json:"ack"`
	Tail     tail   `json:"tail"`
}

// tail adds uniformly 0..Max to a part of the messages.
type tail struct {
	Probability float64       `json:"probability"`
	Max         time.Duration `json:"max"`
}

// Fields are the paths of all that a file may hold, in the format's order, those of `rate` and `policy` left out; [] stands
// for an index.
func Fields() []string { return appendFields(nil, reflect.TypeFor[file](), "") }

func appendFields(out []string, t reflect.Type, prefix string) []string {
	for i := range t.NumField() {
		f := t.Field(i).Type
		path := prefix + tagName(t.Field(i))
		for f.Kind() == reflect.Pointer || f.Kind() == reflect.Slice {
			if f.Kind() == reflect.Slice && f.Elem().Kind() == reflect.Struct {
				path += "[]"
			}
			f = f.Elem()
		}
		out = append(out, path)
		if f.Kind() == reflect.Struct && f != reflect.TypeFor[v1alpha1.Rate]() && f != reflect.TypeFor[v1alpha1.QuotaPolicySpec]() {
			out = appendFields(out, f, path+".")
		}
	}
	return out
}

// defaults is what a file need not say.
func defaults() file {
	usual := Delay{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}
	return file{
		Runs: 1, Seed: 1, Arrivals: Poisson,
		Network: network{Uplink: usual, Downlink: usual, Tail: tail{0.002, 100 * time.Millisecond}},
		Timing: Timing{
			Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond, IdleTick: 100 * time.Millisecond,
			StaleAfter: 200 * time.Millisecond, FallbackFloor: 0.5,
		},
	}
}
