package admin

import (
	"net/http"
	"sync"
)

type check = func() (ready bool, reasons []string)

type readiness struct {
	mu    sync.RWMutex
	parts []string
	check map[string]check
}

func (r *readiness) add(part string, c check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.check == nil {
		r.check = map[string]check{}
	}
	if _, again := r.check[part]; !again {
		r.parts = append(r.parts, part)
	}
	r.check[part] = c
}

// State is the body of /readyz. Ready: every part is. A part may be ready and still give reasons: it
// is degraded.
type State struct {
	Ready bool        `json:"ready"`
	Parts []PartState `json:"parts"`
}

// PartState is one part's readiness.
type PartState struct {
	Part    string   `json:"part"`
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"`
}

func (r *readiness) state() State {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := State{Ready: true, Parts: []PartState{}}
	for _, part := range r.parts {
		ready, reasons := r.check[part]()
		s.Ready = s.Ready && ready
		s.Parts = append(s.Parts, PartState{part, ready, reasons})
	}
	return s
}

func (r *readiness) serve(w http.ResponseWriter, _ *http.Request) {
	s := r.state()
	status := http.StatusOK
	if !s.Ready {
		status = http.StatusServiceUnavailable
	}
	WriteJSON(w, status, s)
}
