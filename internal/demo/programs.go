package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/aggregator"
	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/sidecar"
)

// grace is what a sidecar may take to end: Kafka is still there then.
const grace = 2 * time.Second

func kafkaConfig(addr, id string) bus.Config {
	return bus.Config{Brokers: []string{addr}, ClientID: id}
}

// targets are those of the policies, each once: every pod carries them all.
func (d *demo) targets() []string {
	t := slices.Clone(d.watched.targets)
	slices.Sort(t)
	return slices.Compact(t)
}

// sidecar starts pod i's.
func (d *demo) sidecar(i int, kafka string) error {
	p, err := newPod(d.dir, i)
	if err != nil {
		return err
	}
	d.pods = append(d.pods, p)
	s, err := sidecar.New(sidecar.Config{
		Listen:    p.check(),
		Namespace: d.watched.namespace, Pod: p.name,
		Targets:     d.targets(),
		IdentityKey: demoKey(),
		Kafka:       kafkaConfig(kafka, "weir-demo-"+p.name), Topics: demoTopics(),
		Admin: admin.Config{Address: p.adminAddr()},
		Grace: grace,
	}, d.log.Named(p.name))
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	d.parts.start("sidecar of "+p.name, s.Run)
	return nil
}

// aggregator starts the one aggregator, which also publishes the policy.
func (d *demo) aggregator(kafka, redis string) error {
	a, err := aggregator.New(aggregator.Config{
		Instance: aggregatorName, Group: demoGroup,
		Policies:    d.policies(),
		IdentityKey: demoKey(),
		Kafka:       kafkaConfig(kafka, aggregatorName), Topics: demoTopics(),
		Redis: store.Config{Addresses: []string{redis}},
		Grace: grace,
	}, d.log.Named("aggregator"))
	if err != nil {
		return fmt.Errorf("aggregator: %w", err)
	}
	d.parts.start("aggregator", a.Run)
	return nil
}
