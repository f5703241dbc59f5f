package load

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Run is load under way. It is safe for concurrent use.
type Run struct {
	config Config
	start  time.Time
	lanes  []*lane
	cells  map[key]*cell // read only once made
	stop   chan struct{}
	once   sync.Once
	done   chan struct{} // closed when the last answer is in
}

// lane carries requests to one pod.
type lane struct {
	pod      Pod
	jobs     chan job      // holds as many as may be under way: sending never waits
	underWay chan struct{} // one entry for each request under way
}

type job struct {
	request *Request
	cell    *cell
}

// stream is a source with its state.
type stream struct {
	source   Source
	arrivals *arrivals
	lanes    []*lane
	cells    []*cell // of this source on each lane
	sent     int     // so far, to take requests and lanes in turn
}

// Start begins to send. The run owns the pods' targets: they are closed when
// it has ended.
func Start(config Config) (*Run, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	r := &Run{
		config: config,
		cells:  map[key]*cell{},
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	for _, pod := range config.Pods {
		r.lanes = append(r.lanes, &lane{
			pod:      pod,
			jobs:     make(chan job, config.Outstanding),
			underWay: make(chan struct{}, config.Outstanding),
		})
	}
	streams := r.streams()
	r.start = time.Now()
	go r.run(streams)
	return r, nil
}

// streams makes the state of each source, and the cells for all their answers.
func (r *Run) streams() []*stream {
	streams := make([]*stream, 0, len(r.config.Sources))
	for i, source := range r.config.Sources {
		s := &stream{source: source, arrivals: newArrivals(source.Rate, r.gap(source, i))}
		for _, l := range r.lanes {
			if len(source.Pods) == 0 || slices.Contains(source.Pods, l.pod.Name) {
				s.lanes = append(s.lanes, l)
				s.cells = append(s.cells, r.cell(key{source.Name, l.pod.Name}))
			}
		}
		streams = append(streams, s)
	}
	return streams
}

func (r *Run) gap(s Source, i int) func() float64 {
	if s.Poisson {
		return rand.New(rand.NewPCG(r.config.Seed, uint64(i))).ExpFloat64
	}
	return func() float64 { return 1 }
}

func (r *Run) cell(k key) *cell {
	if r.cells[k] == nil {
		r.cells[k] = &cell{}
	}
	return r.cells[k]
}

// run sends until the end, waits for the answers under way, and closes targets.
func (r *Run) run(streams []*stream) {
	defer close(r.done)
	var workers sync.WaitGroup
	for _, l := range r.lanes {
		for range r.config.Outstanding {
			workers.Go(func() { r.work(l) })
		}
	}
	r.dispatch(streams)
	for _, l := range r.lanes {
		close(l.jobs)
	}
	workers.Wait()
	for _, l := range r.lanes {
		_ = l.pod.Target.Close()
	}
}

// dispatch hands over requests as they become due.
func (r *Run) dispatch(streams []*stream) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		now := r.Elapsed()
		over := r.config.For > 0 && now >= r.config.For
		if over {
			now = r.config.For
		}
		for _, s := range streams {
			for range s.arrivals.due(now) {
				s.send()
			}
		}
		if over {
			return
		}
		select {
		case <-ticker.C:
		case <-r.stop:
			return
		}
	}
}

// send hands one request to the next lane, or counts it as unsent.
func (s *stream) send() {
	k := s.sent
	s.sent++
	lane, cell := s.lanes[k%len(s.lanes)], s.cells[k%len(s.lanes)]
	select {
	case lane.underWay <- struct{}{}:
	default:
		cell.update(func(t *Tally) { t.Unsent++ })
		return
	}
	cell.update(func(t *Tally) { t.Sent++ })
	lane.jobs <- job{s.request(k), cell}
}

func (s *stream) request(k int) *Request {
	if s.source.Make != nil {
		return s.source.Make(k)
	}
	return &s.source.Request
}

func (r *Run) work(l *lane) {
	for j := range l.jobs {
		r.do(l.pod.Target, j)
		<-l.underWay
	}
}

func (r *Run) do(target Target, j job) {
	ctx, cancel := context.WithTimeout(context.Background(), r.config.Timeout)
	defer cancel()
	sent := r.Elapsed()
	answer, err := target.Do(ctx, j.request)
	now := r.Elapsed()
	j.cell.update(func(t *Tally) {
		if err != nil {
			t.Errors++
			t.LastError = err
			return
		}
		t.answered(answer.Status, sent, now)
	})
}

// Elapsed returns the time since the start, in which rates and tallies are.
func (r *Run) Elapsed() time.Duration { return time.Since(r.start) }

// Stop ends the sending and does not wait.
func (r *Run) Stop() { r.once.Do(func() { close(r.stop) }) }

// Wait waits for the end and for all answers, and returns the whole account.
func (r *Run) Wait() Result {
	<-r.done
	return r.Result()
}

// Result returns the account up to now.
func (r *Run) Result() Result {
	result := Result{tallies: make(map[key]*Tally, len(r.cells))}
	for k, c := range r.cells {
		sum := &Tally{}
		c.update(func(t *Tally) { sum.add(t) })
		result.tallies[k] = sum
	}
	return result
}
