package feed

import (
	"math"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// maxWait bounds durations of a record: longer than any period, short enough to compute with.
const maxWait = 400 * 24 * time.Hour

// Record is a decision on one counter.
type Record struct {
	ID wirev1.ID
	quota.Record
}

// decodeRecord reports false for a record that no owner sends.
func decodeRecord(r *wirev1.Record) (Record, bool) {
	out := Record{
		ID: wirev1.ID{Hi: r.GetIdHi(), Lo: r.GetIdLo()},
		Record: quota.Record{
			PolicyVersion: r.GetPolicyVersion(),
			Amount:        r.GetAmount(), Rate: r.GetRate(),
			Remaining: r.GetRemaining(), Expire1: r.GetExpire1(), Expire2: r.GetExpire2(),
			Content: r.GetContent(), Demand: r.GetDemand(), MeanCost: orOne(r.GetMeanCost()),
			ShareSum: r.GetShareSum(), Epsilon: float64(r.GetEpsilon()), Level: math.Inf(1),
			Grant: r.GetGrant(), Burst: float64(r.GetBurst()), Paced: r.GetPaced(),
			BlockedFor: millis(r.GetBlockedForMs()), ResetIn: millis(r.GetResetInMs()),
		},
	}
	if r.Level != nil {
		out.Level = *r.Level
	}
	return out, !out.ID.IsZero() && plausible(&out.Record)
}

func plausible(r *quota.Record) bool {
	for _, v := range [...]float64{
		r.Amount, r.Rate, r.Expire1, r.Expire2, r.Content, r.Demand, r.MeanCost, r.ShareSum, r.Epsilon, r.Grant, r.Burst,
	} {
		if !(v >= 0) || math.IsInf(v, 0) { // NaN is not >= 0
			return false
		}
	}
	return !math.IsNaN(r.Remaining) && !math.IsInf(r.Remaining, 0) && r.Level >= 0 && r.Amount > 0
}

func orOne(meanCost float32) float64 {
	if meanCost == 0 {
		return 1
	}
	return float64(meanCost)
}

func millis(ms uint64) time.Duration {
	return time.Duration(min(ms, uint64(maxWait/time.Millisecond))) * time.Millisecond //nolint:gosec // bounded by maxWait
}

func decodeHeader(h *wirev1.Header) quota.Header {
	return quota.Header{
		Epoch: h.GetEpoch(), Sequence: h.GetSequence(), Watermark: h.GetWatermark(),
		OwnerTime: quota.Millis(h.GetOwnerTimeMs()),
		Flush:     period(h.GetFlushMs(), DefaultFlush), Tick: period(h.GetTickMs(), DefaultTick),
		Deferred: h.GetDeferred(),
	}
}

// The fleet's periods where a header gives none.
const (
	DefaultFlush = 50 * time.Millisecond
	DefaultTick  = 25 * time.Millisecond
)

func period(ms uint32, fallback time.Duration) time.Duration {
	if ms == 0 {
		return fallback
	}
	return time.Duration(min(max(ms, 10), 10_000)) * time.Millisecond
}
