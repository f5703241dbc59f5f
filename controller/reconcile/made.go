package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// made is which object each record was made of that this process published last: one that was deleted and made
// again within one look has the same name. It has no more entries than the topic has records. The zero value is
// ready to use; it is safe for concurrent use.
type made struct {
	mu  sync.Mutex
	uid map[types.NamespacedName]types.UID
}

func (m *made) note(n types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uid == nil {
		m.uid = map[types.NamespacedName]types.UID{}
	}
	m.uid[n] = uid
}

func (m *made) forget(n types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.uid, n)
}

// ofAnother reports whether the record is known to be of another object than uid's.
func (m *made) ofAnother(n types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.uid[n]
	return known && was != uid
}
