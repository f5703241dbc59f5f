package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// WriteJSON answers with v, indented for people.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// ReadJSON reads the body into v, unknown keys refused. Where it returns false it has answered.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		http.Error(w, "the body is too long", http.StatusRequestEntityTooLarge)
		return false
	}
	if err != nil {
		http.Error(w, "the body is not the JSON expected: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

// metrics are some 20 kB of text; a compressor would hold 1 MB between scrapes to make them fewer.
func (s *Server) metrics() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		Registry: s.registry, MaxRequestsInFlight: 4, DisableCompression: true,
	})
}

func (s *Server) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics())
	return mux
}

func registerProfiles(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}
