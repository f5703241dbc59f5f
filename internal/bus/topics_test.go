package bus

import (
	"strings"
	"testing"
	"time"
)

// Usage is kept for as long as is said, and never for less than a new owner may have to read.
func TestUsageRetention(t *testing.T) {
	for said, want := range map[time.Duration]string{0: "600000", time.Hour: "3600000"} {
		topics := Topics{UsageRetention: said}
		if err := topics.Validate(); err != nil {
			t.Errorf("%v: %v", said, err)
		}
		usage := topics.WithDefaults().specs()[0]
		if got := usage.settings["retention.ms"]; usage.name != "weir.usage" || got != want {
			t.Errorf("%v: %s keeps %s ms, want %s", said, usage.name, got, want)
		}
	}
	err := Topics{UsageRetention: time.Minute}.Validate()
	if err == nil || !strings.Contains(err.Error(), "topics.usageRetention") {
		t.Errorf("1m: %v", err)
	}
}
