package agent

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

// A pod says what it has in force each 10 s, and at once when that changes.
func TestStatusIsSentEachTenSecondsAndOnChange(t *testing.T) {
	now := clockStart
	d, h := begun(t, each100, func(c *Config) { c.Clock = func() quota.Time { return now } })
	var sent []*wirev1.PodStatus
	var at []time.Duration
	d.link = &link{sends: sendFunc(func(topic string, value []byte, done func(bus.Ack)) {
		done(bus.Ack{})
		var s wirev1.PodStatus
		if topic != d.config.Topics.Status || proto.Unmarshal(value, &s) != nil {
			t.Fatalf("%q was sent %x", topic, value)
		}
		sent, at = append(sent, &s), append(at, time.Duration(now-clockStart))
	})}
	quiet := func(for_ time.Duration) {
		for end := now + quota.Time(for_); now < end; now += quota.Time(100 * time.Millisecond) {
			d.hear(h, nil)
			d.keepHouse(now)
			for len(d.acks) > 0 {
				(<-d.acks)()
			}
		}
	}
	quiet(time.Second) // until it is settled
	sent, at = nil, nil
	quiet(35 * time.Second)
	if len(sent) != 3 && len(sent) != 4 {
		t.Fatalf("%d records in 35 s without a change, at %v", len(sent), at)
	}
	s := sent[0]
	if s.GetPod() != "shop/orders-1" || !slices.Equal(s.GetTargets(), []string{target}) || len(s.GetPolicies()) != 1 ||
		s.GetPolicies()[0].GetKey() != policyKey || len(s.GetLags()) != 1 || s.GetKeyFingerprint() != d.config.Keys.Fingerprint() {
		t.Errorf("status %v", s)
	}
	before := now
	sent, at = nil, nil
	d.record(policyKey, &wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: &wirev1.Policy{SchemaVersion: 99}}})
	d.installIfChanged()
	quiet(time.Second)
	if len(sent) != 1 || sent[0].GetPolicies()[0].GetError() == "" {
		t.Errorf("after a change at %v: %v at %v", time.Duration(before-clockStart), sent, at)
	}
}

// A pod names the generation of the version that it has in force, not of the one that it refused.
func TestStatusNamesTheGenerationInForce(t *testing.T) {
	d, _ := begun(t, each100)
	publish := func(generation int64, change func(*wirev1.Policy)) int64 {
		m := policyOf(t, d.config.Keys, each100)
		m.GetPolicy().Generation = generation
		change(m.GetPolicy())
		version := d.record(policyKey, m)
		d.installIfChanged()
		return version
	}
	good := publish(3, func(*wirev1.Policy) {})
	bad := publish(4, func(p *wirev1.Policy) { p.SchemaVersion = 99 })
	if p := d.status(d.now()).GetPolicies()[0]; p.GetGeneration() != 3 || p.GetVersion() != good || p.GetSeen() != bad || p.GetError() == "" {
		t.Errorf("status has %v, want generation 3 and version %d in force", p, good)
	}
	again := publish(4, func(*wirev1.Policy) {})
	if p := d.status(d.now()).GetPolicies()[0]; p.GetGeneration() != 4 || p.GetVersion() != again {
		t.Errorf("status has %v, want generation 4 at version %d", p, again)
	}
}
