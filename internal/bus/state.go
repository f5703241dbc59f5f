package bus

import "sync"

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
