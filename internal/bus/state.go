package bus

import (
	"errors"
	"strings"
	"sync"

	"github.com/IBM/sarama"
)

// reason is why something does not work; the zero value: it works. Two of one kind are the same
// trouble in other words, such as "refused" and "timed out" of a broker that is away.
type reason struct {
	kind, text string
}

const (
	unreachable = "unreachable"
	noTopic     = "no topic"
)

func reasonOf(err error) reason {
	if err == nil {
		return reason{}
	}
	out := reason{kind: unreachable, text: brief(err)}
	var refused sarama.KError
	switch {
	case errors.Is(err, ErrNoTopic):
		out.kind = noTopic
	case errors.As(err, &refused):
		out.kind = refused.Error()
	}
	return out
}

// states turns the reasons of several parts into calls on change: f gets a reason that holds for at
// least one part, or "" once none has any; another text for the same kind is no change. Safe for
// concurrent use; calls come one at a time.
type states struct {
	f func(reason string)

	mu   sync.Mutex
	bad  map[any]reason
	told reason
}

// set says how the part named key is.
func (s *states) set(key any, r reason) {
	if s.f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == (reason{}) {
		delete(s.bad, key)
	} else {
		if s.bad == nil {
			s.bad = map[any]reason{}
		}
		s.bad[key] = r
	}
	if now := s.now(); now.kind != s.told.kind {
		s.told = now
		s.f(now.text)
	}
}

// now keeps the kind told last while it still holds, so that parts do not take turns.
func (s *states) now() reason {
	var least reason
	for _, r := range s.bad {
		if r.kind == s.told.kind {
			return r
		}
		if least.kind == "" || r.kind < least.kind {
			least = r
		}
	}
	return least
}

// brief is the first line of an error as a reason that stays the same while its cause does: without
// the local end of a connection ("127.0.0.1:40122->"), which is another each time.
func brief(err error) string {
	const longest = 300
	s, _, _ := strings.Cut(err.Error(), "\n")
	for {
		arrow := strings.Index(s, "->")
		if arrow < 0 {
			break
		}
		s = s[:strings.LastIndexByte(s[:arrow], ' ')+1] + s[arrow+2:]
	}
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
