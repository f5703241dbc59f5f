package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Duration is a time span of whole milliseconds: numbers with ms, s, m or h, such as 500ms, 1.5s, 1m, 24h.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+ms|[0-9]+(\.[0-9]{1,3})?(s|m|h))+$`
type Duration struct {
	time.Duration `json:"-"`
}

// The form of a duration: that of the resource's schema.
const maxDuration = 32

var durationForm = regexp.MustCompile(`^([0-9]+ms|[0-9]+(\.[0-9]{1,3})?(s|m|h))+$`)

// ParseDuration reads a duration as documents have it.
func ParseDuration(s string) (Duration, error) {
	if len(s) > maxDuration || !durationForm.MatchString(s) {
		return Duration{}, errors.New("want a number with ms, s, m or h, such as 500ms, 1s, 1m")
	}
	v, err := time.ParseDuration(s)
	return Duration{Duration: v}, err
}

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string that ParseDuration accepts.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration: want a string such as \"1s\": %w", err)
	}
	v, err := ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: %w", s, err)
	}
	*d = v
	return nil
}

// Overcommit is Learned, None, or a number from 0 to 1 as a string, such as "0.25". The zero value stands
// for Learned.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^(Learned|None|0(\.[0-9]+)?|1(\.0+)?)$`
type Overcommit string

// The overcommits that are words.
const (
	OvercommitLearned Overcommit = "Learned"
	OvercommitNone    Overcommit = "None"
)

const maxOvercommit = 16

var partForm = regexp.MustCompile(`^[0-9](\.[0-9]+)?$`)

// Part returns the number, if o is one; it may be above 1.
func (o Overcommit) Part() (float64, bool) {
	if len(o) > maxOvercommit || !partForm.MatchString(string(o)) {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(o), 64)
	return v, err == nil
}
