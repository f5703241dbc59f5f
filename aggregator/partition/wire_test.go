package partition

import (
	"math"
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// The candidates of a tick are used again before its batch is encoded: a level that followed them would be 0,
// and every pod's share with it.
func TestAWireRecordSharesNothingWithItsCandidate(t *testing.T) {
	r := quota.Record{MeanCost: 1, Level: 105}
	w := wireRecord(wirev1.ID{Lo: 1}, &r)
	r = quota.Record{}
	if w.GetLevel() != 105 {
		t.Errorf("level %v, want 105", w.GetLevel())
	}
	r = quota.Record{MeanCost: 1, Level: math.Inf(1)}
	if w := wireRecord(wirev1.ID{Lo: 1}, &r); w.Level != nil {
		t.Errorf("an infinite level is written as %v, want none", *w.Level)
	}
}
