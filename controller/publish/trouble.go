package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policytopic"
)

// trouble is why the topic cannot be read or written now, as the bus says it; "" where it can.
type trouble struct {
	reading, writing string
}

func (t *Topic) setTrouble(which *string, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*which = reason
}

// Waiting says for people what keeps policies from being published, "" where nothing does. A process that
// merely does not lead waits for nothing.
func (t *Topic) Waiting() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting()
}

// waiting is called with t.mu held.
func (t *Topic) waiting() string {
	var reasons []string
	switch {
	case t.writer == nil:
		reasons = append(reasons, "Kafka has not answered yet")
	case !t.read && t.trouble.reading == "":
		reasons = append(reasons, "the policy topic is not yet read to its end")
	}
	for _, r := range []string{t.trouble.reading, t.trouble.writing} {
		if r != "" && !slices.Contains(reasons, r) {
			reasons = append(reasons, r)
		}
	}
	if err := t.foreign(); err != nil {
		reasons = append(reasons, err.Error())
	}
	return strings.Join(reasons, "; ")
}

// foreign is why this process does not fit the installation: with another identity key, what it hashes
// would match nobody. t.mu is held.
func (t *Topic) foreign() error {
	i := t.book.installation
	if i == nil {
		return nil
	}
	if err := t.cfg.Keys.Check(i.GetKeyFingerprint()); err != nil {
		return fmt.Errorf("%w: nothing is published: %w; give the controller the identity key that every other program has, or delete the record %q of the policy topic to begin a new installation",
			policytopic.ErrInstallation, err, policytopic.InstallationKey)
	}
	return nil
}

// failure is an error whose text stays the same while its cause does: it gets into a policy's status, where
// another text at each attempt would be another status.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

// steady gives an error of the writer's the text that the bus has for its cause.
func (t *Topic) steady(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trouble.writing == "" {
		return err
	}
	return &failure{"Kafka does not take it: " + t.trouble.writing, err}
}

// mayWrite returns who writes r, and the mirror of the log that it is written to; an error where nothing may be
// written now. It is asked last before a record is sent.
func (t *Topic) mayWrite(ctx context.Context, r policytopic.Record) (*bus.Writer, *book, error) {
	t.mu.Lock()
	writer, book, read, waiting := t.writer, t.book, t.read, t.waiting()
	t.mu.Unlock()
	switch {
	case writer == nil || !read:
		return nil, nil, fmt.Errorf("%w: %s", ErrNotReady, waiting)
	case ctx.Err() != nil: // who comes too late may get a free turn all the same
		return nil, nil, t.steady(late(ctx, r))
	case !t.cfg.Leads():
		return nil, nil, fmt.Errorf("%w: another replica leads", ErrNotReady)
	}
	return writer, book, nil
}

func late(ctx context.Context, r policytopic.Record) error {
	return fmt.Errorf("publish %s: %w", r.Key, context.Cause(ctx))
}
