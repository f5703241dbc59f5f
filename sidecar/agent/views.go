package agent

import (
	"context"
	"maps"
	"slices"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// PoliciesView is what the agent believes of policies.
type PoliciesView struct {
	Read         bool         `json:"read"`
	Partitions   int32        `json:"partitions"`
	Installation bool         `json:"installation"`
	Policies     []PolicyView `json:"policies"`
	Conflicts    []string     `json:"conflicts,omitempty"`
	Targets      []TargetView `json:"targets"`
}

// PolicyView is one key of the policy topic.
type PolicyView struct {
	Key     string `json:"key"`
	Version int64  `json:"version"` // in force; -1: none
	Seen    int64  `json:"seen"`
	Error   string `json:"error,omitempty"`
	InForce bool   `json:"inForce"`
}

// TargetView is one target of the pod.
type TargetView struct {
	Target    string `json:"target"`
	Partition int32  `json:"partition"`
	LivePods  int    `json:"livePods"` // 0: not known
}

// Policies describes what is in force. It fails when ctx ends.
func (a *Agent) Policies(ctx context.Context) (PoliciesView, error) {
	return ask(ctx, a, a.policiesView)
}

func (a *Agent) policiesView() PoliciesView {
	v := PoliciesView{
		Read: a.policies.read, Partitions: a.partitions, Installation: a.policies.installation != nil,
		Policies: []PolicyView{}, Targets: []TargetView{},
	}
	inForce := map[string]bool{}
	for _, p := range a.set.Policies() {
		inForce[p.Key.String()] = true
	}
	for _, p := range a.policies.applied() {
		v.Policies = append(v.Policies, PolicyView{
			Key: p.GetKey(), Version: p.GetVersion(), Seen: p.GetSeen(), Error: p.GetError(), InForce: inForce[p.GetKey()],
		})
	}
	for _, c := range a.set.Conflicts() {
		v.Conflicts = append(v.Conflicts, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(a.targets)) {
		t := a.targets[name]
		n, known := t.Fleet.Pods()
		if !known {
			n = 0
		}
		v.Targets = append(v.Targets, TargetView{name, t.Partition, n})
	}
	return v
}

// DecisionView is what the agent hears of one partition.
type DecisionView struct {
	Partition int32    `json:"partition"`
	AgeMS     *float64 `json:"ageMs,omitempty"`    // absent: no header yet
	MaxAgeMS  *float64 `json:"maxAgeMs,omitempty"` // the largest of the last minute
	Epoch     int64    `json:"epoch"`
	Sequence  uint64   `json:"sequence"`
	Watermark int64    `json:"watermark"`
	Owner     string   `json:"owner,omitempty"`
	InForce   bool     `json:"inForce"` // records apply
	Reason    string   `json:"reason,omitempty"`
}

// Decisions describes the partitions read. It fails when ctx ends.
func (a *Agent) Decisions(ctx context.Context) ([]DecisionView, error) {
	return ask(ctx, a, a.decisionsView)
}

func (a *Agent) decisionsView() []DecisionView {
	now := a.now()
	v := []DecisionView{}
	for _, p := range slices.Sorted(maps.Keys(a.hearings)) {
		h := a.hearings[p]
		d := DecisionView{Partition: p, Owner: h.instance, InForce: h.live, Reason: h.reason}
		if newest, ok := h.feed.Header(); ok {
			d.Epoch, d.Sequence, d.Watermark = newest.Epoch, newest.Sequence, newest.Watermark
		}
		if age, ok := h.fresh.Age(now); ok {
			value := ms(max(age, 0))
			d.AgeMS = &value
		}
		if largest, ok := h.largestAge(now); ok {
			value := ms(largest)
			d.MaxAgeMS = &value
		}
		v = append(v, d)
	}
	return v
}

// CountersView is some counters of Total.
type CountersView struct {
	Total    int           `json:"total"`
	Counters []CounterView `json:"counters"`
}

// CounterView is one counter with a slot.
type CounterView struct {
	ID         string   `json:"id"`
	Target     string   `json:"target"`
	Limit      string   `json:"limit"`
	CountedBy  []string `json:"countedBy,omitempty"`
	Admitted   uint64   `json:"admitted"`
	Offered    uint64   `json:"offered"`
	Demand     float64  `json:"demand"` // requests/s on this pod
	Share      float64  `json:"share"`
	Left       float64  `json:"left"`
	Unincluded float64  `json:"unincluded"`
	BlockedMS  float64  `json:"blockedMs,omitempty"`
	Cold       bool     `json:"cold,omitempty"`
	Paced      bool     `json:"paced,omitempty"`
	Dirty      bool     `json:"dirty,omitempty"`
}

// Counters describes the counters with the most offered on this pod, of one limit ("policy
// namespace/policy name/limit") or of all (""), at most n of them.
func (a *Agent) Counters(ctx context.Context, limit string, n int) (CountersView, error) {
	return ask(ctx, a, func() CountersView { return a.countersView(limit, n) })
}

func (a *Agent) countersView(limit string, n int) CountersView {
	now := a.now()
	a.takeMade(now)
	top := topCounters{n: n}
	for _, s := range a.ledger.Live() {
		if limit == "" || s.Limit == limit {
			top.add(s)
		}
	}
	out := []CounterView{}
	for _, s := range top.sorted() {
		state := s.Counter.State(now)
		out = append(out, CounterView{
			ID: s.ID.String(), Target: s.Target, Limit: s.Limit, CountedBy: countedBy(s.Identity()),
			Admitted: state.Admitted, Offered: state.Offered, Demand: state.Demand, Share: state.Share,
			Left: state.Left, Unincluded: state.Unincluded, BlockedMS: ms(state.Blocked),
			Cold: state.Cold, Paced: state.Paced, Dirty: state.Dirty,
		})
	}
	return CountersView{top.seen, out}
}

// countedBy says in words what a counter counts by; secrets are keyed hashes already, and cut short.
func countedBy(identity []byte) []string {
	id, err := wirev1.DecodeIdentity(identity)
	if err != nil {
		return nil
	}
	var out []string
	for i := range id.Dimensions {
		out = append(out, policy.DescribeDimension(&id.Dimensions[i]))
	}
	return out
}
