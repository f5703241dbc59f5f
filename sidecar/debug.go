package sidecar

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/explain"
	"github.com/weirproxy/weir/sidecar/agent"
)

const (
	defaultCounters = 50
	maxCounters     = 1000
)

// registerDebug serves what the sidecar believes. No answer holds a secret: values of secret client
// sources leave the matcher as keyed hashes.
func registerDebug(s *admin.Server, a *agent.Agent) {
	s.HandleDebug("GET /debug/policies", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := a.Policies(r.Context())
		reply(w, v, err)
	}))
	s.HandleDebug("GET /debug/decisions", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := a.Decisions(r.Context())
		reply(w, v, err)
	}))
	s.HandleDebug("GET /debug/counters", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { counters(w, r, a) }))
	s.HandleDebug("POST "+explain.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { explained(w, r, a) }))
}

// counters answers /debug/counters?limit=NS/POLICY/LIMIT&n=50.
func counters(w http.ResponseWriter, r *http.Request, a *agent.Agent) {
	n := defaultCounters
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxCounters {
			http.Error(w, "n: want a number from 1 to "+strconv.Itoa(maxCounters), http.StatusBadRequest)
			return
		}
	}
	v, err := a.Counters(r.Context(), r.URL.Query().Get("limit"), n)
	reply(w, v, err)
}

func explained(w http.ResponseWriter, r *http.Request, a *agent.Agent) {
	var req explain.Request
	if !admin.ReadJSON(w, r, &req) {
		return
	}
	v, err := a.Explain(r.Context(), req)
	if err != nil && r.Context().Err() == nil && !errors.Is(err, agent.ErrStopped) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, v, err)
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, "no answer: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	admin.WriteJSON(w, http.StatusOK, v)
}
