package v1alpha1

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Duration is a time span in Go's notation: 500ms, 1s, 1m, 24h.
// +kubebuilder:validation:Type=string
type Duration struct {
	time.Duration `json:"-"`
}

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string that time.ParseDuration accepts.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration: want a string such as \"1s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	d.Duration = v
	return nil
}

// Overcommit is Learned, None, or a number from 0 to 1 in its text form. The zero value stands for
// Learned.
type Overcommit string

// The overcommits that are words.
const (
	OvercommitLearned Overcommit = "Learned"
	OvercommitNone    Overcommit = "None"
)

// Part returns the number, if o is one.
func (o Overcommit) Part() (float64, bool) {
	v, err := strconv.ParseFloat(string(o), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// MarshalJSON writes words as a string and numbers as a number.
func (o Overcommit) MarshalJSON() ([]byte, error) {
	if v, ok := o.Part(); ok {
		return json.Marshal(v)
	}
	return json.Marshal(string(o))
}

// UnmarshalJSON reads a string or a number.
func (o *Overcommit) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("overcommit: %w", err)
	}
	switch v := v.(type) {
	case string:
		*o = Overcommit(v)
	case float64:
		*o = Overcommit(strconv.FormatFloat(v, 'g', -1, 64))
	default:
		return fmt.Errorf("overcommit: want Learned, None or a number, got %s", b)
	}
	return nil
}
