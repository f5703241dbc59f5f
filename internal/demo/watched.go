package demo

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
)

//go:embed demo-policy.yaml
var demoPolicy []byte

// watched is the rate that the load runs into, and what the policies attach to.
type watched struct {
	title   string // policy, limit and rate, for people
	limit   int    // the most that any window may hold
	window  time.Duration
	perSec  float64
	targets []string
	// pods to carry the targets: the sidecars' namespace.
	namespace string
}

// readPolicy is the user's policy file, or the demo's own.
func readPolicy(file string) (data []byte, docs []*v1alpha1.QuotaPolicy, err error) {
	name := file
	if file == "" {
		name, data = "demo-policy.yaml", demoPolicy
	} else if data, err = os.ReadFile(file); err != nil {
		return nil, nil, fmt.Errorf("--policy: %w", err)
	}
	docs, err = policy.Parse(name, data)
	if err == nil && len(docs) == 0 {
		err = fmt.Errorf("%s: holds no policy", name)
	}
	return data, docs, err
}

// watch finds the enforced rate that the load meets first: of those with the shortest window the one that gives
// out least.
func watch(docs []*v1alpha1.QuotaPolicy, onLoad func(*policy.Limit) bool) (watched, error) {
	var w watched
	for _, d := range docs {
		p, err := policy.Compile(policy.Key{Origin: policy.OriginFile, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name}, 0, d, nil)
		if err != nil {
			return w, err
		}
		w.addTargets(p)
		for _, l := range p.Limits {
			if l.Mode == policy.Enforce && l.EnforcePercent == 100 && onLoad(l) {
				w.tighten(p, l)
			}
		}
	}
	if w.perSec == 0 {
		return w, errors.New("no limit that is enforced for every client concerns the demo's requests; see --method, --path and --header")
	}
	return w, nil
}

func (w *watched) addTargets(p *policy.Policy) {
	for _, t := range p.Targets {
		w.targets = append(w.targets, t.Name)
	}
	w.namespace = p.Key.Namespace
}

func (w *watched) tighten(p *policy.Policy, l *policy.Limit) {
	for _, r := range l.Rates {
		limit, window := bound(r.Rule)
		perSec := r.Rule.Limit / window.Seconds()
		if w.perSec == 0 || window < w.window || window == w.window && perSec < w.perSec {
			w.perSec, w.limit, w.window = perSec, limit, window
			w.title = fmt.Sprintf("%s, limit %s, %s", p.Name, l.Name, r.Title)
		}
	}
}

// bound is the most that any window of the rule may hold: for a token bucket what flows in and what it
// held.
func bound(r *quota.Rule) (limit int, window time.Duration) {
	switch r.Algorithm {
	case quota.TokenBucket:
		return int(r.Limit + r.Burst), r.Window
	case quota.Calendar:
		return int(r.Limit), map[quota.Period]time.Duration{
			quota.Hour: time.Hour, quota.Day: 24 * time.Hour, quota.Week: 7 * 24 * time.Hour,
			quota.Month: 31 * 24 * time.Hour, quota.Year: 366 * 24 * time.Hour,
		}[r.Period]
	default:
		return int(r.Limit), r.Window
	}
}
