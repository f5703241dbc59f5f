package scenario

import (
	"math"
	"net/netip"
	"sort"
	"strconv"
	"time"
)

// At is the source's rate at t, requests/s; 0 before the start.
func (s *Source) At(t time.Duration) float64 {
	if t < 0 {
		return 0
	}
	if s.Repeat > 0 {
		t %= s.Repeat
	}
	i := s.after(t) - 1
	if i < 0 {
		return 0
	}
	return s.Rate[i].Value
}

// after is the index of the first step later than t, within one round.
func (s *Source) after(t time.Duration) int {
	return sort.Search(len(s.Rate), func(i int) bool { return s.Rate[i].At > t })
}

// NextChange is the next time after t when the rate is another than at t; false: it stays as it is.
func (s *Source) NextChange(t time.Duration) (time.Duration, bool) {
	now, round := s.At(t), time.Duration(0)
	if s.Repeat > 0 && t > 0 {
		round = t - t%s.Repeat
	}
	next, ok := s.stepAfter(t-round, round, now)
	if !ok && s.Repeat > 0 {
		next, ok = s.stepAfter(-1, round+s.Repeat, now)
	}
	return next, ok
}

// stepAfter is the first step after t, counted from round, whose rate is not now.
func (s *Source) stepAfter(t, round time.Duration, now float64) (time.Duration, bool) {
	for i := s.after(t); i < len(s.Rate); i++ {
		if s.Rate[i].Value != now {
			return round + s.Rate[i].At, true
		}
	}
	return 0, false
}

// Requests is how many the source offers until t, on average.
func (s *Source) Requests(t time.Duration) float64 {
	if s.Repeat <= 0 || t <= s.Repeat {
		return s.requestsInRound(t)
	}
	return float64(t/s.Repeat)*s.requestsInRound(s.Repeat) + s.requestsInRound(t%s.Repeat)
}

func (s *Source) requestsInRound(t time.Duration) float64 {
	sum := 0.0
	for i, step := range s.Rate {
		end := t
		if i+1 < len(s.Rate) {
			end = min(end, s.Rate[i+1].At)
		}
		sum += step.Value * max(end-step.At, 0).Seconds()
	}
	return sum
}

// ClientName is the value of the source's client i: Client itself where it has one only; else, where Client is an
// address, the i-th one from it on; else Client, a dash, and i.
func (s *Source) ClientName(i int) string {
	if s.Clients == 0 {
		return s.Client
	}
	first, err := netip.ParseAddr(s.Client)
	if err != nil {
		return s.Client + "-" + strconv.Itoa(i)
	}
	return addressAfter(first, i).String()
}

// addressAfter is the i-th address after a, starting again after the last one.
func addressAfter(a netip.Addr, i int) netip.Addr {
	bytes := a.AsSlice()
	carry := i
	for k := len(bytes) - 1; k >= 0 && carry > 0; k-- {
		carry += int(bytes[k])
		bytes[k] = byte(carry) //nolint:gosec // the rest is carried
		carry >>= 8
	}
	out, _ := netip.AddrFromSlice(bytes)
	return out
}

// Zipf is n weights, the i-th one (i+1)^-skew: all 1 for 0.
func Zipf(n int, skew float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Pow(float64(i+1), -skew)
	}
	return out
}
