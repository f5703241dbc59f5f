package bus

import (
	"strings"
	"sync"
)

// states turns the reasons of several parts into calls on change: f gets a reason that holds for at
// least one part, or "" once none has any. Safe for concurrent use; calls come one at a time.
type states struct {
	f func(reason string)

	mu   sync.Mutex
	bad  map[any]string
	told string
}

// set says how the part named key is; "" is well.
func (s *states) set(key any, reason string) {
	if s.f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason == "" {
		delete(s.bad, key)
	} else {
		if s.bad == nil {
			s.bad = map[any]string{}
		}
		s.bad[key] = reason
	}
	if now := s.now(); now != s.told {
		s.told = now
		s.f(now)
	}
}

// now keeps the reason told last while it still holds, so that parts do not take turns.
func (s *states) now() string {
	least := ""
	for _, r := range s.bad {
		if r == s.told {
			return r
		}
		if least == "" || r < least {
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
