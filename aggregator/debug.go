package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weirproxy/weir/aggregator/ingest"
	"github.com/weirproxy/weir/aggregator/partition"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
)

const (
	inspectMost    = 1000
	inspectTimeout = time.Second
	surveyTimeout  = 3 * time.Second
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
	a.admin.HandleDebug("GET "+partition.TopPath, a.withCore((*core).debugLimits))
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

// debugLimits answers ?limits= and &counters= with a partition.Top.
func (c *core) debugLimits(w http.ResponseWriter, r *http.Request) {
	limits, err := number(r, "limits", partition.DefaultTopLimits, 1, partition.MaxTopLimits)
	counters, err2 := number(r, "counters", 1, 0, partition.MaxTopCounters)
	if err := errors.Join(err, err2); err != nil {
		admin.WriteJSON(w, http.StatusBadRequest, problem{err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), surveyTimeout)
	defer cancel()
	top := partition.Top{Instance: c.cfg.Instance, Partitions: c.count.Load(), Held: []int32{}}
	var views []partition.LimitView
	for _, s := range c.survey(ctx, counters) {
		top.Held = append(top.Held, s.partition)
		views = append(views, s.views...)
	}
	top.Limits, top.LeftOut = partition.MergeTop(views, limits, counters)
	admin.WriteJSON(w, http.StatusOK, top)
}

func number(r *http.Request, name string, fallback, least, most int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s: want a number from %d to %d", name, least, most)
	}
	return n, nil
}

type surveyed struct {
	partition int32
	views     []partition.LimitView
}

// survey asks all partitions that decide here, at the same time, and leaves out those that do not answer in time.
func (c *core) survey(ctx context.Context, counters int) []surveyed {
	var asking sync.WaitGroup
	var mu sync.Mutex
	var out []surveyed
	for _, h := range c.owner.Holdings() {
		if h.State != ingest.Live {
			continue
		}
		asking.Go(func() {
			views, err := c.owner.Survey(ctx, h.Partition, counters)
			if err != nil {
				return // it is being handed over, or busy
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, surveyed{h.Partition, views})
		})
	}
	asking.Wait()
	slices.SortFunc(out, func(a, b surveyed) int { return int(a.partition - b.partition) })
	return out
}
