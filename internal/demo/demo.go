package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
)

const (
	startWithin = 30 * time.Second
	endWithin   = 5 * time.Second // each part
	period      = time.Second     // of the table
	agePeriod   = 100 * time.Millisecond
	inFlight    = 256
	maxAges     = 1 << 17
)

// demo is one run.
type demo struct {
	Options
	request
	watched watched
	dir     string
	log     *zap.Logger
	parts   *stack
	pods    []*pod
	tally   *tally
	ages    []time.Duration
	hints   []string
	// unchecked requests were let through by Envoy, as the sidecar had not answered in time.
	unchecked atomic.Int64
}

// Run runs the demo until ctx ends or o.For has passed, and prints what it showed. Whatever it started has ended
// when it returns; an error says what could not be started, or what ended too early.
func Run(ctx context.Context, o Options) (err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	d := &demo{Options: o, parts: newStack(), tally: &tally{}, request: request{o.Method, o.Path, o.Headers}}
	if d.dir, err = os.MkdirTemp("", "weir-demo-"); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.parts.stop(endWithin), d.closeConns())
		if removed := os.RemoveAll(d.dir); err == nil {
			err = removed
		}
	}()
	if err := d.prepare(); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := d.start(starting); err != nil {
		if ctx.Err() != nil {
			return nil // asked to end before it began
		}
		return err
	}
	return d.show(ctx)
}

// prepare reads the policy and opens the log.
func (d *demo) prepare() error {
	if err := d.openLog(); err != nil {
		return err
	}
	data, docs, err := readPolicy(d.Policy)
	if err != nil {
		return err
	}
	if d.watched, err = watch(docs, func(l *policy.Limit) bool { return concerns(l, d.request) }); err != nil {
		return err
	}
	if d.Load == 0 {
		d.Load = 3 * d.watched.perSec
	}
	dir := d.policies()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "policy.yaml")
	if d.Policy == "" {
		return os.WriteFile(file, data, 0o600)
	}
	abs, err := filepath.Abs(d.Policy)
	if err != nil {
		return err
	}
	return os.Symlink(abs, file) // so that edits of the user's own file are taken up
}

func (d *demo) policies() string { return filepath.Join(d.dir, "policies") }

func (d *demo) openLog() error {
	if d.Verbose {
		d.log = log.New(d.Err, zapcore.InfoLevel, "weir-demo")
		return nil
	}
	f, err := os.Create(filepath.Join(d.dir, "weir.log"))
	if err != nil {
		return err
	}
	d.log = log.New(f, zapcore.InfoLevel, "weir-demo")
	d.parts.start("log", func(ctx context.Context) error { <-ctx.Done(); return f.Close() })
	return nil
}

// lastWords are the newest warnings of the programs' log, for when something would not start.
func (d *demo) lastWords() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "weir.log"))
	if err != nil {
		return ""
	}
	lines := slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool {
		return !strings.Contains(l, `"level":"warn"`) && !strings.Contains(l, `"level":"error"`)
	})
	if len(lines) == 0 {
		return ""
	}
	return "\nthe newest warnings:\n" + strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// show runs the load and draws what happens.
func (d *demo) show(ctx context.Context) error {
	if d.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.For)
		defer cancel()
	}
	l := &load{rate: d.Load, shares: sharesOf(len(d.pods)), tally: d.tally, inFlight: inFlight, start: time.Now()}
	for _, p := range d.pods {
		l.pods = append(l.pods, p.asker)
	}
	loadEnded := make(chan struct{})
	go func() { defer close(loadEnded); l.run(ctx) }()
	err := d.watch(ctx, l.start)
	<-loadEnded
	if err != nil {
		return err
	}
	return d.finish()
}

// watch draws and samples until ctx ends or a part fails.
func (d *demo) watch(ctx context.Context, start time.Time) error {
	out := d.Out
	if d.JSON {
		out = d.Err
	}
	s := &screen{out: out, terminal: d.Terminal && !d.JSON}
	draw, sample := time.NewTicker(period), time.NewTicker(agePeriod)
	defer draw.Stop()
	defer sample.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.parts.failed:
			return fmt.Errorf("%w%s", err, d.lastWords())
		case <-sample.C:
			d.sampleAges(ctx)
		case <-draw.C:
			s.draw(d.frame(time.Since(start)))
		}
	}
}

func (d *demo) sampleAges(ctx context.Context) {
	for _, p := range d.pods {
		age, ok := p.sampleAge(ctx, d.request)
		if ctx.Err() != nil {
			return
		}
		if p.age = age; !ok {
			continue
		}
		if len(d.ages) >= maxAges {
			d.ages = append(d.ages[:0], d.ages[maxAges/2:]...)
		}
		d.ages = append(d.ages, age)
	}
}

func (d *demo) frame(at time.Duration) *frame {
	each, all := d.tally.since(at-time.Second, len(d.pods))
	_, inWindow := d.tally.since(at-d.watched.window, len(d.pods))
	f := &frame{title: d.watched.title, at: at, all: all, window: inWindow.admitted, watched: d.watched, hints: d.hints}
	for i, p := range d.pods {
		f.rows = append(f.rows, row{name: p.name, counts: each[i], age: p.age, where: p.url})
	}
	f.failed, f.lastErr = d.tally.failures()
	f.unchecked = d.unchecked.Load()
	return f
}

// finish prints the result.
func (d *demo) finish() error {
	r := newResult(d.watched, d.tally, len(d.pods), d.ages)
	if d.JSON {
		return json.NewEncoder(d.Out).Encode(r)
	}
	r.print(d.Out)
	return nil
}

func (d *demo) closeConns() error {
	var errs []error
	for _, p := range d.pods {
		if p.conn != nil {
			errs = append(errs, p.conn.Close())
		}
	}
	return errors.Join(errs...)
}
