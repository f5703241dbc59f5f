package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/internal/log"
)

// lookEach is how often the settings file is read; it is small, and a mounted ConfigMap takes up to a minute.
const lookEach = 2 * time.Second

// settings follows the injector's settings file. The engine is the last good file's, nil until there was one; engine
// and problem may be asked from any goroutine.
type settings struct {
	file    string
	log     *zap.Logger
	read    []byte // as last read, and seen as last used, good or bad; by Run's goroutine alone
	seen    []byte
	current atomic.Pointer[inject.Engine]
	wrong   atomic.Pointer[string] // what is wrong with the file now; nil: nothing
}

// follow reads the file. One that is wrong is followed until it is right.
func follow(file string, logger *zap.Logger) *settings {
	s := &settings{file: file, log: logger}
	s.read, _ = os.ReadFile(file) // at the start it was written long ago
	s.again()
	return s
}

func (s *settings) engine() *inject.Engine { return s.current.Load() }

// problem is what is wrong with the file, "" where its last version is in force.
func (s *settings) problem() string {
	if wrong := s.wrong.Load(); wrong != nil {
		return *wrong
	}
	return ""
}

// Run follows the file until ctx ends. It never returns an error: a file that is wrong leaves the last good one
// in force, and is logged once a change.
func (s *settings) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.again()
		case <-ctx.Done():
			return nil
		}
	}
}

// again looks at the file once more and says what became of it, if that changed.
func (s *settings) again() {
	was, before := s.problem(), s.engine()
	err := s.look()
	switch {
	case err != nil && err.Error() != was:
		s.wrong.Store(new(err.Error()))
		s.log.Error("the injector's settings file cannot be used; the last good one stays in force, or without one no pod gets a sidecar",
			zap.String(log.File, s.file), zap.Error(err))
	case err == nil:
		s.wrong.Store(nil)
		if before != nil && s.engine() != before {
			s.log.Info("the injector's settings changed; pods that are created from now on get them", zap.String(log.File, s.file))
		}
	}
}

// look makes an engine of the file where it differs from the one last used, and was the same at the look before: a
// file may be read while it is written, and the half of one may be valid.
func (s *settings) look() error {
	data, err := os.ReadFile(s.file)
	if err != nil {
		s.read, s.seen = nil, nil
		return fmt.Errorf("read the injector's settings: %w", err)
	}
	settled := s.read != nil && bytes.Equal(data, s.read)
	s.read = data
	if !settled || s.seen != nil && bytes.Equal(data, s.seen) {
		return s.standing()
	}
	s.seen = data
	engine, err := engineOf(s.file, data)
	if err != nil {
		return err
	}
	s.current.Store(engine)
	return nil
}

// standing is the problem as it was.
func (s *settings) standing() error {
	if wrong := s.problem(); wrong != "" {
		return errors.New(wrong)
	}
	return nil
}

func engineOf(file string, data []byte) (*inject.Engine, error) {
	v := inject.DefaultSettings()
	if err := inject.ReadSettings(file, data, &v); err != nil {
		return nil, fmt.Errorf("the injector's settings are invalid:\n%w", err)
	}
	return inject.New(v)
}
