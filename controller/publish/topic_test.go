package publish

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// What is in the topic already is not written again: not by the same controller, not by one that was
// restarted.
func TestNothingIsWrittenTwice(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		first, stop := k.open()
		p := mustPublish(t, first, desired(t, "orders", "5", 1))
		if !p.Known || p.Unread || p.Generation != 1 {
			t.Errorf("published %+v", p)
		}
		end := k.end()
		if again := mustPublish(t, first, desired(t, "orders", "5", 1)); again.Version != p.Version || k.end() != end {
			t.Errorf("the same policy was written again: %+v", again)
		}
		stop()
		second, _ := k.open()
		if again := mustPublish(t, second, desired(t, "orders", "5", 1)); again.Version != p.Version || k.end() != end {
			t.Errorf("a restarted controller wrote: %+v, the topic ends at %d, not %d", again, k.end(), end)
		}
		for _, d := range []Desired{desired(t, "orders", "6", 2), desired(t, "orders", "6", 3)} {
			if next := mustPublish(t, second, d); next.Version <= p.Version || next.Generation != d.Generation {
				t.Errorf("generation %d: %+v", d.Generation, next)
			} else {
				p = next
			}
		}
		moved := desired(t, "orders", "6", 3)
		moved.Targets[0].Selector = map[string]string{"app": "orders-2"}
		if next := mustPublish(t, second, moved); next.Version <= p.Version || next.Generation != 3 {
			t.Errorf("another selector of the Service: %+v", next)
		}
		if err := second.Delete(t.Context(), name("orders")); err != nil {
			t.Fatal(err)
		}
		end = k.end()
		if err := second.Delete(t.Context(), name("orders")); err != nil || second.Lookup(name("orders")).Known || k.end() != end {
			t.Errorf("deleted twice: %v, the topic ends at %d, not %d", err, k.end(), end)
		}
	})
}

// What another writer does to the controller's records is told of, and put right by publishing again; what
// another origin does is told of and left alone.
func TestWhatOthersWriteIsPutRight(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		topic, _ := k.open()
		want := mustPublish(t, topic, desired(t, "orders", "5", 1))
		if b, err := topic.Changes().Next(t.Context()); err != nil || !b.All {
			t.Fatalf("after the first reading: %v, %v", b, err)
		}
		told := func(what string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if b, err := topic.Changes().Next(ctx); err != nil || !slices.Equal(b.Names, []types.NamespacedName{name("orders")}) {
				t.Errorf("%s: told of %v, %v", what, b, err)
			}
		}
		k.put("kube/shop/orders", []byte("not the controller's"))
		told("another writer's record")
		if p := mustPublish(t, topic, desired(t, "orders", "5", 1)); p.Version <= want.Version+1 || p.Generation != 1 {
			t.Errorf("put right: %+v", p)
		}
		k.put("kube/shop/orders", nil)
		told("another writer's tombstone")
		if p := mustPublish(t, topic, desired(t, "orders", "5", 1)); !p.Known {
			t.Errorf("put right: %+v", p)
		}
		k.put("file/shop/orders", []byte("a file's"))
		told("a file of the same name")
		end := k.end()
		p := mustPublish(t, topic, desired(t, "orders", "5", 1))
		if !slices.Equal(p.Others, []policy.Key{{Origin: policy.OriginFile, Namespace: "shop", Name: "orders"}}) || k.end() != end {
			t.Errorf("beside a file: %+v", p)
		}
	})
}

// A policy whose object went while no controller ran is found by the next one.
func TestOrphans(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		k.put("file/shop/of-a-file", []byte("x"))
		first, stop := k.open()
		for _, n := range []string{"stays", "gone", "also-gone"} {
			mustPublish(t, first, desired(t, n, "5", 1))
		}
		stop()
		second, _ := k.open()
		orphans := second.Orphans(func(n types.NamespacedName) bool { return n == name("stays") })
		if !slices.Equal(orphans, []types.NamespacedName{name("also-gone"), name("gone")}) {
			t.Errorf("orphans %v", orphans)
		}
		for _, n := range orphans {
			if err := second.Delete(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		if left := second.Orphans(func(types.NamespacedName) bool { return false }); !slices.Equal(left, []types.NamespacedName{name("stays")}) {
			t.Errorf("left %v", left)
		}
	})
}

// With another identity key nothing is written: the hashes would match nobody.
func TestAnotherIdentityKeyIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		k.installation(k.keys.Fingerprint() + 1)
		topic, _ := k.open()
		end := k.end()
		_, err := topic.Publish(t.Context(), desired(t, "orders", "5", 1))
		if !errors.Is(err, policytopic.ErrInstallation) || !strings.Contains(err.Error(), "identity key") || k.end() != end {
			t.Errorf("got %v; the topic ends at %d, not %d", err, k.end(), end)
		}
		if w := topic.Waiting(); !strings.Contains(w, "nothing is published") {
			t.Errorf("readiness says %q", w)
		}
		k.installation(k.keys.Fingerprint())
		k.eventually("the right key's installation is read", func() bool { return topic.Waiting() == "" })
		mustPublish(t, topic, desired(t, "orders", "5", 1))
	})
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		var leads atomic.Bool
		topic, _ := k.open(func(c *Config) { c.Leads = leads.Load })
		if _, err := topic.Publish(t.Context(), desired(t, "orders", "5", 1)); !errors.Is(err, ErrNotReady) {
			t.Errorf("a standby published: %v", err)
		}
		if w := topic.Waiting(); w != "" {
			t.Errorf("a warm standby waits for %q", w)
		}
		leads.Store(true)
		mustPublish(t, topic, desired(t, "orders", "5", 1))
		leads.Store(false)
		end := k.end()
		if _, err := topic.Publish(t.Context(), desired(t, "orders", "6", 2)); !errors.Is(err, ErrNotReady) || k.end() != end {
			t.Errorf("one that leads no more published: %v", err)
		}
	})
}

// A policy topic that is deleted and made again holds what the objects say soon after.
func TestATopicMadeAnewIsWrittenAgain(t *testing.T) {
	broker := startBroker(t, "")
	k := newKit(t, broker.Addr())
	topic, _ := k.open()
	mustPublish(t, topic, desired(t, "orders", "5", 1))
	if b, err := topic.Changes().Next(t.Context()); err != nil || !b.All {
		t.Fatal(b, err)
	}
	record := func(limit string) policytopic.Record {
		d := desired(t, "orders", limit, 1)
		r, err := policytopic.NewRecord(policytopic.Source{
			Origin: policy.OriginKube, Document: d.Document, Generation: d.Generation, Targets: resolved(d.Targets),
		}, k.keys)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := broker.Cluster().DeleteTopic(k.topics.Policies); err != nil {
		t.Fatal(err)
	}
	k.ensure()
	for _, limit := range []string{"4", "5"} { // what another controller has put right
		k.put("kube/shop/orders", record(limit).Value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if b, err := topic.Changes().Next(ctx); err != nil || !b.All {
		t.Fatalf("told of %v, %v", b, err)
	}
	if p := mustPublish(t, topic, desired(t, "orders", "5", 1)); p.Version != 1 || p.Unread || k.end() != 2 {
		t.Errorf("what the new topic has was written again: %+v, it ends at %d", p, k.end())
	}
	if p := mustPublish(t, topic, desired(t, "other", "5", 1)); p.Version != 2 {
		t.Errorf("what the new topic lacks: %+v", p)
	}
}

// Until another log is read, nothing is known of it: nothing is written, and nobody looks.
func TestAnotherLogIsReadBeforeItIsWritten(t *testing.T) {
	topic := New(Config{Name: "weir.policies", Log: zap.NewNop(), Pause: time.Millisecond})
	told := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := topic.Changes().Next(ctx)
		return err == nil
	}
	topic.caughtUp()
	if !told() || topic.Lookup(name("orders")).Unread {
		t.Fatal("the topic is not read")
	}
	old := topic.book
	topic.begin("the topic was made anew")
	if _, err := topic.Publish(t.Context(), desired(t, "orders", "5", 1)); !errors.Is(err, ErrNotReady) || !topic.Lookup(name("orders")).Unread || told() {
		t.Errorf("before the other log is read: %v", err)
	}
	// One that was sent to the log that is no more.
	if err := topic.wrote(old, policytopic.Record{Key: kubeKey(name("orders")), Value: []byte{1}}, 500); !errors.Is(err, ErrNotReady) {
		t.Errorf("a record of the last log: %v", err)
	}
	topic.caughtUp()
	if p := topic.Lookup(name("orders")); !told() || p.Unread || p.Known {
		t.Errorf("once it is read: %+v", p)
	}
}

// A policy that is in the topic as it is to be is fine, whatever holds others up; one that waits for them in vain
// says why they wait.
func TestOthersThatWaitHoldUpNothingThatIsThere(t *testing.T) {
	broker := startBroker(t, "")
	k := newKit(t, broker.Addr())
	topic, _ := k.open(func(c *Config) { c.Timeout = 50 * time.Millisecond })
	mustPublish(t, topic, desired(t, "orders", "5", 1))
	topic.turn <- struct{}{} // another policy's record is under way
	if p := mustPublish(t, topic, desired(t, "orders", "5", 1)); p.Version != 0 {
		t.Errorf("published %+v", p)
	}
	if err := topic.Delete(t.Context(), name("never-there")); err != nil {
		t.Errorf("nothing to delete: %v", err)
	}
	topic.setTrouble(&topic.trouble.writing, "no broker answers")
	if _, err := topic.Publish(t.Context(), desired(t, "orders", "6", 2)); err == nil || err.Error() != "Kafka does not take it: no broker answers" {
		t.Errorf("one that waits in vain: %v", err)
	}
}

// Who leads no more has a context that ended, and a turn that is free is no reason to write.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		topic, _ := k.open()
		mustPublish(t, topic, desired(t, "orders", "5", 1))
		ended, end := context.WithCancel(t.Context())
		end()
		before := k.end()
		for range 20 { // of two things that are ready, one is taken at random
			if _, err := topic.Publish(ended, desired(t, "orders", "6", 2)); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		}
		mustPublish(t, topic, desired(t, "last", "5", 1)) // what had been sent would be before it
		if got := k.end() - before; got != 1 {
			t.Errorf("%d records were written, want 1", got)
		}
	})
}

// At its bound the mirror refuses a new policy before it is written, or each attempt would write it once more. What it
// had no room for can be deleted all the same.
func TestAFullTopic(t *testing.T) {
	onEach(t, func(t *testing.T, k *kit) {
		topic, _ := k.open()
		mustPublish(t, topic, desired(t, "orders", "5", 1))
		topic.mu.Lock()
		for i := len(topic.book.entries); i < maxRecords; i++ {
			topic.book.entries[policy.Key{Origin: policy.OriginKube, Namespace: "full", Name: strconv.Itoa(i)}] = entry{}
		}
		topic.mu.Unlock()
		end := k.end()
		for range 3 {
			if _, err := topic.Publish(t.Context(), desired(t, "one-more", "5", 1)); err == nil || !strings.Contains(err.Error(), "delete some") || k.end() != end {
				t.Fatalf("one too many: %v; the topic ends at %d, not %d", err, k.end(), end)
			}
		}
		if p := mustPublish(t, topic, desired(t, "orders", "6", 2)); p.Generation != 2 {
			t.Errorf("one that is known: %+v", p)
		}
		k.put("kube/shop/unseen", []byte("another writer's"))
		k.eventually("it is read", func() bool {
			topic.mu.Lock()
			defer topic.mu.Unlock()
			return topic.book.refused
		})
		end = k.end()
		if err := topic.Delete(t.Context(), name("unseen")); err != nil || k.end() != end+1 {
			t.Errorf("delete what there was no room for: %v; the topic ends at %d, want %d", err, k.end(), end+1)
		}
	})
}

// Kafka that is away is an error within the bound, said in readiness, and over when it is back.
func TestKafkaAway(t *testing.T) {
	cfg := Config{Name: "weir.policies", Log: zap.NewNop()}
	if p, err := New(cfg).Publish(t.Context(), desired(t, "orders", "5", 1)); !errors.Is(err, ErrNotReady) || !p.Unread {
		t.Errorf("before Run: %+v, %v", p, err)
	}
	if w := New(cfg).Waiting(); !strings.Contains(w, "Kafka") {
		t.Errorf("before Run readiness says %q", w)
	}
	broker := startBroker(t, "")
	k := newKit(t, broker.Addr())
	topic, _ := k.open(func(c *Config) { c.Timeout = 10 * time.Second })
	addr := broker.Addr()
	broker.Close()
	texts := map[string]bool{}
	for range 3 {
		_, err := topic.Publish(t.Context(), desired(t, "orders", "5", 1))
		if err == nil {
			t.Fatal("published without Kafka")
		}
		texts[err.Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("one cause has several texts, and a status would change with each: %v", texts)
	}
	k.eventually("readiness says what is away", func() bool { return strings.Contains(topic.Waiting(), addr) })
	startBroker(t, addr)
	k.ensure()
	k.eventually("it is published once Kafka is back", func() bool {
		p, err := topic.Publish(t.Context(), desired(t, "orders", "5", 1))
		return err == nil && p.Known && topic.Waiting() == ""
	})
}

// A document that no reader would take is not written.
func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	k := newKit(t, startBroker(t, "").Addr())
	topic, _ := k.open()
	bad := desired(t, "orders", "5", 1)
	bad.Targets[0].Name = "shop/Service/another"
	end := k.end()
	if _, err := topic.Publish(t.Context(), bad); err == nil || k.end() != end {
		t.Errorf("published, error %v", err)
	}
}
