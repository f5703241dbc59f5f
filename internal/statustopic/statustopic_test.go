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

// What was appended while nobody listened is old when it is read, even where nothing newer is there.
func TestARecordThatWaitedIsNoNews(t *testing.T) {
	epoch := time.UnixMilli(1_700_000_000_000)
	age := func(c *Clock, appended, now, want time.Duration) {
		t.Helper()
		if got := c.Age(epoch.Add(appended), now); got != want {
			t.Errorf("appended at %v, now %v: age %v, want %v", appended, now, got, want)
		}
	}
	var c Clock
	c.Read(epoch.Add(-time.Hour), 0) // at a start nothing else is known
	c.Read(epoch, time.Second)
	if c.Known() {
		t.Error("the time is known by a record that may be of any age")
	}
	age(&c, 0, 2*time.Second, time.Second)
	c.Heard(epoch.Add(3*time.Hour), 3*time.Second)
	if age(&c, 0, 3*time.Second, 3*time.Hour); !c.Known() {
		t.Error("the time is not known by a record that was heard")
	}
	// Nobody listens for an hour; then what was said 100 s into it is read.
	later, said := 3*time.Second+time.Hour, 3*time.Hour+100*time.Second
	c.Read(epoch.Add(said), later)
	age(&c, said, later, time.Hour-100*time.Second)
	c.Heard(epoch.Add(4*time.Hour), later)
	age(&c, said, later, time.Hour-100*time.Second)

	// A broker's clock that was once ahead does not count when a live record is first heard.
	var ahead Clock
	ahead.Read(epoch.Add(time.Hour), 0)
	ahead.Heard(epoch, time.Second)
	age(&ahead, 0, 2*time.Second, time.Second)
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
