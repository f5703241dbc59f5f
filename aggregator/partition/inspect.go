package partition

import (
	"encoding/hex"
	"strings"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Belief is what the owner believes of one counter, for people. Secrets are hashes in identities
// already.
type Belief struct {
	ID        string  `json:"id"`
	Target    string  `json:"target"`
	Limit     string  `json:"limit,omitempty"` // policy namespace/name/limit
	Phase     string  `json:"phase"`
	Client    string  `json:"dimensions,omitempty"`
	Content   float64 `json:"content"`
	Left      float64 `json:"left"`
	Total     uint64  `json:"total"`
	Throttled bool    `json:"throttled,omitempty"`
	Waiting   int     `json:"waiting,omitempty"`
	Dirty     bool    `json:"dirty,omitempty"`
}

// Query selects counters: by id, or by a limit's "namespace/name/limit" (or the beginning of it).
type Query struct {
	ID    wirev1.ID
	Limit string
	// Most to return.
	Most int
}

// Inspect returns what the owner believes of some counters.
func (p *Partition) Inspect(q Query, now quota.Time) []Belief {
	if !q.ID.IsZero() {
		if c := p.counters[q.ID]; c != nil {
			return []Belief{p.belief(c)}
		}
		return nil
	}
	var out []Belief
	for _, c := range p.all {
		if len(out) >= q.Most {
			break
		}
		if strings.HasPrefix(c.limitName(), q.Limit) {
			out = append(out, p.belief(c))
		}
	}
	return out
}

func (p *Partition) belief(c *counter) Belief {
	b := Belief{
		ID: c.id.String(), Target: c.target.name, Phase: phaseNames[c.phase], Waiting: len(c.waiting), Dirty: c.dirty,
	}
	if c.policy != "" {
		b.Limit = c.limitName()
	}
	if id, err := wirev1.DecodeIdentity(c.identity); err == nil {
		b.Client = dimensions(id.Dimensions)
	}
	if c.total != nil {
		b.Content, b.Left, b.Total, b.Throttled = c.total.Sum(), c.total.Left(), c.total.Admitted(), c.total.Throttled()
	}
	return b
}

func (c *counter) limitName() string {
	if c.limit == nil {
		return c.policy + "/"
	}
	return c.policy + "/" + c.limit.name
}

var phaseNames = [...]string{
	loading: "loading", wanting: "identity unknown", parked: "no policy", exempt: "unlimited", live: "live", gone: "gone",
}

func dimensions(dims []wirev1.Dimension) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		v := d.Value
		for j := range len(v) {
			if v[j] < ' ' || v[j] > '~' {
				v = hex.EncodeToString([]byte(v))
				break
			}
		}
		parts[i] = d.Name + "=" + v
	}
	return strings.Join(parts, ",")
}
