package statustopic

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

// A reader that begins with old records sees them as old, whatever its own clock says.
func TestAgesAreBetweenAppendTimes(t *testing.T) {
	epoch := time.UnixMilli(1_700_000_000_000)
	var c Clock
	c.Heard(epoch, 0)
	c.Heard(epoch.Add(40*time.Second), time.Second)
	c.Heard(epoch.Add(20*time.Second), 2*time.Second) // an older one tells nothing new
	for appended, want := range map[time.Duration]time.Duration{0: 45 * time.Second, 40 * time.Second: 5 * time.Second} {
		if got := c.Age(epoch.Add(appended), 6*time.Second); got != want {
			t.Errorf("appended at %v: age %v, want %v", appended, got, want)
		}
	}
}

func TestARecordIsOfThePodThatIsItsKey(t *testing.T) {
	value, err := proto.Marshal(&wirev1.PodStatus{Pod: "shop/a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key   string
		value []byte
		ok    bool
	}{{"shop/a", value, true}, {"shop/b", value, false}, {"", nil, false}, {"shop/a", []byte("\xff"), false}} {
		if s, err := Decode(bus.Message{Key: []byte(c.key), Value: c.value}); (err == nil) != c.ok || c.ok && s.GetPod() != c.key {
			t.Errorf("key %q: %v, %v", c.key, s, err)
		}
	}
}
