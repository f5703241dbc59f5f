package policies

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policytopic"
)

// scanEach is how often the directory is read; files are few and small.
const scanEach = time.Second

// sender is what publishing needs of bus.Writer.
type sender interface {
	Send(topic string, partition int32, key, value []byte, done func(bus.Ack)) error
}

// Directory publishes a directory's policy files while this process is their publisher. Problem may be
// called from any goroutine.
type Directory struct {
	Dir     string
	Topic   string
	Keys    wirev1.Keys
	Watcher *Watcher
	Writer  sender
	// Owner0 reports whether this process owns usage partition 0: its owner alone publishes.
	Owner0 func() bool
	Log    *zap.Logger

	said atomic.Pointer[string] // what is wrong, as last logged
}

// Problem is what is wrong with the files, "" where all are published or another process publishes.
func (d *Directory) Problem() string {
	if said := d.said.Load(); said != nil {
		return *said
	}
	return ""
}

// Run looks through the directory each second until ctx ends. It never returns an error: what is wrong
// is logged once a change, and the last good version stays in force.
func (d *Directory) Run(ctx context.Context) error {
	select {
	case <-d.Watcher.Ready():
	case <-ctx.Done():
		return nil
	}
	tick := time.NewTicker(scanEach)
	defer tick.Stop()
	for {
		if d.Owner0() {
			d.say(d.scan(ctx))
		} else {
			d.said.Store(nil) // the owner's to say
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// scan publishes what changed and returns all that is wrong.
func (d *Directory) scan(ctx context.Context) error {
	files, err := readDir(d.Dir)
	if err != nil {
		return fmt.Errorf("policies directory: %w", err)
	}
	p := parseFiles(files, d.Keys)
	errs := make([]error, 0, len(p.errs))
	for _, name := range sortedKeys(files) {
		if err := p.errs[name]; err != nil {
			errs = append(errs, err)
		}
	}
	for _, r := range plan(p, d.Watcher.hashes("file")) {
		if _, err := policytopic.Publish(ctx, d.Writer, d.Topic, r); err != nil {
			return errors.Join(append(errs, err)...)
		}
		what := "policy published"
		if r.Value == nil {
			what = "policy deleted, its file is gone"
		}
		d.Log.Info(what, zap.String(log.Policy, r.Key.String()))
	}
	return errors.Join(errs...)
}

func (d *Directory) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == d.Problem() {
		return
	}
	if d.said.Store(&text); err != nil {
		d.Log.Error("policy files are not all published, the last good versions stay in force", zap.Error(err))
	} else {
		d.Log.Info("policy files are all published")
	}
}
