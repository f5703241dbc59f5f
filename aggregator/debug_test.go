package aggregator

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/aggregator/partition"
)

// debugGet asks the admin server as one on this machine does.
func (a *Aggregator) debugGet(path string) (int, string) {
	r := httptest.NewRequest("GET", "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	a.admin.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (a *Aggregator) top(t *testing.T, query string) partition.Top {
	t.Helper()
	code, body := a.debugGet(partition.TopPath + query)
	var top partition.Top
	if err := json.Unmarshal([]byte(body), &top); code != 200 || err != nil {
		t.Fatalf("%d, %v: %s", code, err, body)
	}
	return top
}

// What pods admitted beyond a limit is in the answer about limits, and in the metrics.
func TestLimitsAreShownByHowFullTheyAre(t *testing.T) {
	s := newSite(t)
	s.policy("100")
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	x.counts["calm"] = 50
	x.report()
	s.wait("the excess is seen", func() bool {
		x.counts["acme"] += 30 // some 3000/s of 100, by a pod that does not listen
		x.report()
		top := a.top(t, "")
		return len(top.Limits) == 1 && top.Limits[0].Fullest > 1.5
	})
	top := a.top(t, "?counters=5")
	if top.Instance != "a-0" || top.Partitions != partitions || fmt.Sprint(top.Held) != "[0 1 2 3]" || top.LeftOut != 0 {
		t.Errorf("the answer is %+v", top)
	}
	l := top.Limits[0]
	if l.Limit != "shop/orders/each-client" || l.Rate != "100/1s" || l.Mode != "Enforce" || fmt.Sprint(l.Owners) != "[a-0]" || l.Counters != 2 ||
		l.OverUnits < 50 || l.OverSeconds <= 0 || l.Offered < 10 {
		t.Errorf("the limit is %+v", l)
	}
	if len(l.Top) != 2 || !strings.Contains(strings.Join(l.Top[0].CountedBy, ""), "acme") || l.Top[0].Target != target || l.Top[0].Amount != 100 {
		t.Errorf("its counters are %+v", l.Top)
	}
	if none := a.top(t, "?limits=1&counters=0"); len(none.Limits) != 1 || len(none.Limits[0].Top) != 0 {
		t.Errorf("without counters: %+v", none)
	}
	s.wait("metrics say so", func() bool {
		_, metrics := a.debugGet("/metrics")
		return strings.Contains(metrics, `weir_aggregator_limit_over_units_total{limit="each-client",partition="`) &&
			strings.Contains(metrics, "weir_aggregator_inclusion_seconds_count ")
	})
	s.policy("100000")
	s.wait("the old rate is forgotten", func() bool {
		_, metrics := a.debugGet("/metrics")
		return !strings.Contains(metrics, `rate="100/1s"`)
	})
}

func TestQuestionsAboutLimitsAreBounded(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	if code, body := a.debugGet(partition.TopPath); code != 200 && (code != 503 || !strings.Contains(body, "/readyz")) {
		t.Errorf("before Kafka answers: %d %s", code, body)
	}
	s.wait("it is live", func() bool { return a.live() == partitions })
	for _, query := range []string{"?limits=101", "?limits=0", "?counters=6", "?counters=-1", "?limits=x"} {
		if code, body := a.debugGet(partition.TopPath + query); code != 400 || !strings.Contains(body, "want a number from") {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
	if top := a.top(t, ""); len(top.Limits) != 0 || len(top.Held) != partitions {
		t.Errorf("without counters: %+v", top)
	}
}

// Questions are answered between reports, and disturb none.
func TestASurveyIsAnsweredUnderLoad(t *testing.T) {
	s := newSite(t)
	a := s.start("a-0", nil)
	s.wait("it is live", func() bool { return a.live() == partitions })
	x := s.pod("shop/x")
	done := make(chan struct{})
	go func() { defer close(done); x.load(300*time.Millisecond, "acme", "bar") }()
	for {
		if top := a.top(t, ""); len(top.Held) != partitions {
			t.Errorf("only %v answered", top.Held)
		}
		select {
		case <-done:
			s.tallies(x)
			return
		default:
		}
	}
}
