package publish

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
)

func orders() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "orders"} }

func TestTheMirrorKnowsTheNewestRecordOfEachOrigin(t *testing.T) {
	b := newBook()
	take := func(version int64, key, value string, changed bool) {
		t.Helper()
		m := bus.Message{Offset: version, Key: []byte(key)}
		if value != "" {
			m.Value = []byte(value)
		}
		if _, got, err := b.read(m); err != nil || got != changed {
			t.Errorf("version %d of %s: changed %v, error %v", version, key, got, err)
		}
	}
	take(3, "kube/shop/orders", "a", true)
	take(4, "cli/shop/orders", "b", true)
	take(5, "file/shop/orders", "c", true)
	take(7, "kube/shop/orders", "d", true)
	take(6, "kube/shop/orders", "e", false) // older than what is known already
	if p := b.published(orders()); p.Version != 7 || !p.Known || len(p.Others) != 2 || p.Others[0].Origin != policy.OriginFile {
		t.Errorf("published %+v", p)
	}
	take(8, "file/shop/orders", "", true)
	take(9, "kube/shop/orders", "", true)
	take(10, "kube/shop/orders", "", false)
	if p := b.published(orders()); p.Known || p.Version != 0 || len(p.Others) != 1 || p.Others[0].Origin != policy.OriginCLI {
		t.Errorf("after tombstones: %+v", p)
	}
}

func TestForeignRecordsChangeNothing(t *testing.T) {
	b := newBook()
	for _, m := range []bus.Message{
		{Key: []byte("nonsense"), Value: []byte("x")},
		{Key: nil, Value: nil},
		{Key: []byte("installation"), Value: []byte("\xff")},
		{Key: []byte("installation"), Value: []byte{}},
	} {
		if _, changed, err := b.read(m); changed || err == nil {
			t.Errorf("%q: changed %v, error %v", m.Key, changed, err)
		}
	}
	for i := range maxRecords {
		if _, err := b.put(policy.Key{Origin: policy.OriginFile, Namespace: "shop", Name: strconv.Itoa(i)}, int64(i), []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.put(kubeKey(orders()), 1, []byte{1}); err == nil {
		t.Error("the mirror has no bound")
	}
}
