package simulate

import (
	"context"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// memory is the store, which may lose what it had.
type memory struct{ *store.Memory }

func newMemory() *memory { return &memory{store.NewMemory()} }

// Claim, Load and Flush do not wait, and so need no context.
func (m *memory) Claim(o store.Owner) (store.Record, error) {
	return m.Memory.Claim(context.Background(), o)
}

func (m *memory) Load(partition int32, ids []wirev1.ID) ([]store.Saved, error) {
	return m.LoadCounters(context.Background(), partition, ids)
}

func (m *memory) Flush(f *store.Flush) error { return m.Memory.Flush(context.Background(), f) }
