package aggregator

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/weirproxy/weir/aggregator/partition"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
)

const (
	inspectMost    = 1000
	inspectTimeout = time.Second
)

// debug registers what this aggregator believes: partitions, policies, and counters on demand.
func (a *Aggregator) debug() {
	a.admin.HandleDebug("GET /debug/partitions", a.withCore(func(c *core, w http.ResponseWriter, _ *http.Request) {
		admin.WriteJSON(w, http.StatusOK, c.owner.Holdings())
	}))
	a.admin.HandleDebug("GET /debug/policies", a.withCore(func(c *core, w http.ResponseWriter, _ *http.Request) {
		admin.WriteJSON(w, http.StatusOK, c.policyViews())
	}))
	a.admin.HandleDebug("GET /debug/counters", a.withCore((*core).debugCounters))
}

func (a *Aggregator) withCore(f func(*core, http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := a.core.get()
		if c == nil {
			admin.WriteJSON(w, http.StatusServiceUnavailable, problem{"not connected to Kafka yet; /readyz says why"})
			return
		}
		f(c, w, r)
	})
}

type problem struct {
	Error string `json:"error"`
}

type policyView struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
	Error   string `json:"error,omitempty"`
}

func (c *core) policyViews() []policyView {
	var out []policyView
	for _, p := range c.policies.Current().Policies() {
		out = append(out, policyView{Key: p.Key.String(), Version: p.Version})
	}
	for _, p := range c.policies.Problems() {
		out = append(out, policyView{Key: p.Key.String(), Version: p.Version, Error: p.Err.Error()})
	}
	return out
}

// debugCounters answers ?id=, or ?limit=namespace/name/limit, and &most= (100, at most 1000).
func (c *core) debugCounters(w http.ResponseWriter, r *http.Request) {
	q := partition.Query{Limit: r.FormValue("limit"), Most: 100}
	if s := r.FormValue("id"); s != "" {
		id, err := wirev1.ParseID(s)
		if err != nil {
			admin.WriteJSON(w, http.StatusBadRequest, problem{err.Error()})
			return
		}
		q.ID = id
	}
	if n, err := strconv.Atoi(r.FormValue("most")); err == nil && n > 0 {
		q.Most = min(n, inspectMost)
	}
	ctx, cancel := context.WithTimeout(r.Context(), inspectTimeout)
	defer cancel()
	out := []partition.Belief{}
	for _, h := range c.owner.Holdings() {
		found, err := c.owner.Inspect(ctx, h.Partition, q)
		if err != nil {
			continue // it is being claimed or handed over
		}
		out = append(out, found...)
		if q.Most -= len(found); q.Most <= 0 {
			break
		}
	}
	admin.WriteJSON(w, http.StatusOK, out)
}
