package designs

import "time"

// mail is messages under way, those of one pod in order.
type mail[T any] struct {
	fleet *Fleet
	way   direction
	last  []time.Duration // when the newest of each pod arrives
	due   map[time.Duration][]letter[T]
}

type letter[T any] struct {
	pod  int
	body T
}

func newMail[T any](f *Fleet, way direction) *mail[T] {
	return &mail[T]{fleet: f, way: way, last: make([]time.Duration, f.Pods), due: map[time.Duration][]letter[T]{}}
}

// report sends a pod's message to what decides.
func (m *mail[T]) report(now time.Duration, pod int, body T) {
	m.fleet.reports++
	m.send(now, pod, body)
	if m.fleet.random.Float64() < m.fleet.twice {
		m.send(now, pod, body)
	}
}

// broadcast sends to every pod.
func (m *mail[T]) broadcast(now time.Duration, body T) {
	m.fleet.broadcasts++
	for pod := range m.last {
		m.send(now, pod, body)
	}
}

func (m *mail[T]) send(now time.Duration, pod int, body T) {
	if m.fleet.random.Float64() < m.fleet.lost[m.way] {
		return
	}
	at := max(now+m.fleet.delay(m.way), m.last[pod])
	m.last[pod] = at
	m.due[at] = append(m.due[at], letter[T]{pod, body})
}

// arrived takes out what arrives at now.
func (m *mail[T]) arrived(now time.Duration) []letter[T] {
	l := m.due[now]
	delete(m.due, now)
	return l
}
