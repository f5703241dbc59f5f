package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// published is what the policy topic holds.
type published struct {
	fingerprint uint32 // of the installation's key; 0: no installation record yet
	keys        map[policy.Key]bool
}

// readTopic reads the policy topic to its end.
func readTopic(ctx context.Context, client *bus.Client, topic string) (*published, error) {
	p := &published{keys: map[policy.Key]bool{}}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	atEnd, reason := false, ""
	reader := bus.NewReader(client, bus.ReaderConfig{
		Topic:      topic,
		Partitions: map[int32]bus.From{0: {}},
		Handle:     p.take,
		CaughtUp:   func(int32) { atEnd = true; stop() },
		State:      func(_ int32, why string) { reason = why },
	})
	err := reader.Run(ctx)
	if !atEnd {
		return nil, fmt.Errorf("read topic %s: %w", topic, errors.Join(err, context.Cause(ctx), waitingFor(reason)))
	}
	return p, nil
}

func waitingFor(reason string) error {
	if reason == "" {
		return nil
	}
	return fmt.Errorf("%s; `weir-aggregator topics ensure` makes the topics", reason)
}

func (p *published) take(m bus.Message) {
	key, err := policy.ParseKey(string(m.Key))
	if err == nil && m.Value == nil {
		delete(p.keys, key)
		return
	}
	var msg wirev1.PolicyMessage
	if proto.Unmarshal(m.Value, &msg) != nil {
		return
	}
	if i := msg.GetInstallation(); i != nil {
		p.fingerprint = i.GetKeyFingerprint()
	} else if err == nil {
		p.keys[key] = true
	}
}

// check refuses a key that is not the installation's: what it hashes would match nobody.
func (p *published) check(keys wirev1.Keys) error {
	if p.fingerprint == 0 {
		return nil
	}
	if err := keys.Check(p.fingerprint); err != nil {
		return fmt.Errorf("the installation has another key, nothing is published: %w", err)
	}
	return nil
}

// stronger is a policy of the same name whose origin goes before k's.
func (p *published) stronger(k policy.Key) (policy.Key, bool) {
	for _, origin := range []string{policy.OriginKube, policy.OriginFile} {
		other := policy.Key{Origin: origin, Namespace: k.Namespace, Name: k.Name}
		if p.keys[other] {
			return other, true
		}
	}
	return policy.Key{}, false
}

func recordsOf(docs []document, keys wirev1.Keys, remove bool) ([]policytopic.Record, error) {
	records := make([]policytopic.Record, 0, len(docs))
	for _, d := range docs {
		r, err := policytopic.NewRecord(policytopic.Source{Origin: policy.OriginCLI, Document: d.spec}, keys)
		if err != nil {
			return nil, err
		}
		if remove {
			r.Value = nil
		}
		records = append(records, r)
	}
	return records, nil
}

// publish writes the records one after the other and waits for each to be acknowledged.
func publish(ctx context.Context, client *bus.Client, topic string, records []policytopic.Record) error {
	// An acknowledgement may come a moment before its place is free again: hence two.
	writer := bus.NewWriter(client, bus.WriterConfig{Depth: map[string]int{topic: 2}})
	defer writer.Close()
	for _, r := range records {
		if _, err := policytopic.Publish(ctx, writer, topic, r); err != nil {
			return fmt.Errorf("%w; apply again, which repeats nothing that is in force already", err)
		}
	}
	return nil
}
