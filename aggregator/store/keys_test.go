package store

import (
	"strings"
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// DESIGN 4: all keys of a partition have one hash tag, another partition another: a flush is one slot of a
// cluster, and partitions spread.
func TestKeysOfAPartitionShareASlot(t *testing.T) {
	tag := func(key string) string {
		from, to := strings.IndexByte(key, '{'), strings.IndexByte(key, '}')
		if from < 0 || to < from {
			t.Fatalf("%q has no hash tag", key)
		}
		return key[from : to+1]
	}
	record := tag(recordKey(3))
	for _, id := range []wirev1.ID{{Lo: 1}, {Hi: 1 << 63, Lo: 7}} {
		if got := tag(counterKey(3, id)); got != record {
			t.Errorf("a counter is tagged %s, its partition's record %s", got, record)
		}
	}
	if tag(recordKey(4)) == record {
		t.Error("two partitions share a slot")
	}
}
