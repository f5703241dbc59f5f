package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // pods and owners agree on time zones, with or without the system's files

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	defaultStaleAfter = 500 * time.Millisecond
	defaultFloor      = 0.5
	defaultTimeZone   = "UTC"
)

func compileRate(l *Limit, index int, r *v1alpha1.Rate, limit *v1alpha1.Limit, f *v1alpha1.Failure) (*Rate, error) {
	rule := &quota.Rule{
		Limit: float64(r.Limit), Strict: limit.Accuracy == v1alpha1.AccuracyStrict,
		StaleAfter: defaultStaleAfter, Floor: defaultFloor, PolicyVersion: l.Policy.Version,
	}
	id := wirev1.Identity{Policy: l.Policy.Name, Limit: l.Name}
	switch r.Algorithm {
	case v1alpha1.Calendar:
		if err := setCalendar(rule, &id, r); err != nil {
			return nil, err
		}
	case v1alpha1.TokenBucket:
		rule.Algorithm, rule.Window, rule.Burst = quota.TokenBucket, r.Window.Duration, float64(or(r.Burst, r.Limit))
	default:
		rule.Algorithm, rule.Window = quota.SlidingWindow, r.Window.Duration
	}
	id.Algorithm = wirev1.Algorithm(rule.Algorithm)
	id.WindowMillis = uint64(rule.Window / time.Millisecond) //nolint:gosec // validated: positive
	setOvercommit(rule, limit.Overcommit)
	setFailure(rule, f)
	return &Rate{Limit: l, Index: index, Rule: rule, Title: rateTitle(r), Identity: id}, nil
}

func setCalendar(rule *quota.Rule, id *wirev1.Identity, r *v1alpha1.Rate) error {
	zone := zoneOf(r)
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return fmt.Errorf("time zone %q: %w", zone, err)
	}
	id.TimeZone, id.Period = zone, wirev1.Period(periodOf(r.Period))
	rule.Algorithm, rule.Period, rule.Location = quota.Calendar, periodOf(r.Period), loc
	return nil
}

func zoneOf(r *v1alpha1.Rate) string {
	if r.TimeZone == "" {
		return defaultTimeZone
	}
	return r.TimeZone
}

func periodOf(p v1alpha1.Period) quota.Period {
	switch p {
	case v1alpha1.Hour:
		return quota.Hour
	case v1alpha1.Day:
		return quota.Day
	case v1alpha1.Week:
		return quota.Week
	case v1alpha1.Month:
		return quota.Month
	case v1alpha1.Year:
		return quota.Year
	default:
		return quota.NoPeriod
	}
}

func setOvercommit(rule *quota.Rule, o v1alpha1.Overcommit) {
	part, isNumber := o.Part()
	switch {
	case o == v1alpha1.OvercommitNone || isNumber && part == 0:
		rule.Overcommit = quota.OvercommitNone
	case isNumber:
		rule.Overcommit, rule.OvercommitPart = quota.OvercommitFixed, part
	}
}

func setFailure(rule *quota.Rule, f *v1alpha1.Failure) {
	if f == nil {
		return
	}
	switch f.Mode {
	case v1alpha1.FailAllow:
		rule.Failure = quota.FailAllow
	case v1alpha1.FailDeny:
		rule.Failure = quota.FailDeny
	case v1alpha1.FailLocalShare:
	}
	if f.StaleAfter != nil {
		rule.StaleAfter = f.StaleAfter.Duration
	}
	rule.Floor = or(f.FallbackFloor, defaultFloor)
}

// rateTitle is for people: 100/1s, 100000/Day (Asia/Singapore), 20/1s burst 40.
func rateTitle(r *v1alpha1.Rate) string {
	amount := strconv.FormatInt(r.Limit, 10)
	if r.Algorithm == v1alpha1.Calendar {
		return amount + "/" + string(r.Period) + " (" + zoneOf(r) + ")"
	}
	title := amount + "/" + shortDuration(r.Window.Duration)
	if r.Algorithm == v1alpha1.TokenBucket {
		title += " burst " + strconv.FormatInt(or(r.Burst, r.Limit), 10)
	}
	return title
}

// shortDuration writes 1m for what time.Duration prints as 1m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
