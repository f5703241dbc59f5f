package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

// spec is how one topic should be.
type spec struct {
	name       string
	partitions int32
	settings   map[string]string
}

// specs are the four topics as docs/design has them: usage and decisions are streams of minutes,
// policies and status keep the newest value of each key.
func (t Topics) specs() []spec {
	stream := map[string]string{
		"cleanup.policy":         "delete",
		"message.timestamp.type": "LogAppendTime",
		"segment.ms":             "60000",
		"segment.bytes":          strconv.Itoa(64 << 20),
	}
	compacted := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
	out := []spec{
		{t.Usage, t.Partitions, with(stream, "retention.ms", strconv.FormatInt(t.UsageRetention.Milliseconds(), 10))},
		{t.Decisions, t.Partitions, with(stream, "retention.ms", "300000")},
		{t.Policies, 1, compacted},
		{t.Status, 1, with(compacted, "segment.ms", "300000")},
	}
	if t.MinInSync > 0 {
		for i := range out {
			out[i].settings = with(out[i].settings, "min.insync.replicas", strconv.Itoa(t.MinInSync))
		}
	}
	return out
}

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	out[key] = value
	return out
}

// Ensure makes the topics that are missing and sets the settings that differ; with dryRun it changes
// nothing. It returns all differences, each with whether it was put right: what only a person can
// change (fewer or more partitions, which would move counters) is Manual and left as it is. On an
// error the changes made so far are returned with it; with dryRun a topic that this user may not look at
// (TopicError) keeps it from none of the others. It returns once the brokers show what was changed,
// so that what comes next finds it.
func (c *Client) Ensure(ctx context.Context, t Topics, dryRun bool) ([]Change, error) {
	t = t.WithDefaults()
	out, err := c.ensure(ctx, t, dryRun)
	if err == nil && slices.ContainsFunc(out, func(c Change) bool { return c.Applied }) {
		err = c.settle(ctx, t)
	}
	return out, err
}

const (
	settleFor   = 30 * time.Second
	settleAgain = 50 * time.Millisecond
)

// settle waits until every broker that answers shows the topics as they should be.
func (c *Client) settle(ctx context.Context, t Topics) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		err := c.shown(ctx, t)
		if err == nil {
			return nil
		}
		if !pause(ctx, settleAgain) {
			return fmt.Errorf("the topics are made, but the brokers do not show it yet; ask again: %w", err)
		}
	}
}

// shown is nil once nothing is left to change and every broker that answers knows every topic. One that is
// away hears of them when it returns.
func (c *Client) shown(ctx context.Context, t Topics) error {
	left, err := c.ensure(ctx, t, true)
	if err != nil {
		return err
	}
	for _, l := range left {
		if !l.Manual {
			return errors.New(l.String())
		}
	}
	for _, addr := range c.addrs() {
		l, err := c.open(ctx, addr, c.cfg.RequestTimeout)
		if err != nil {
			continue
		}
		for _, s := range t.specs() {
			if _, err = l.topicID(ctx, s.name); err != nil {
				break
			}
		}
		l.close()
		if err != nil {
			return fmt.Errorf("broker %s: %w", addr, err)
		}
	}
	return nil
}

func (c *Client) ensure(ctx context.Context, t Topics, dryRun bool) ([]Change, error) {
	var out []Change
	err := c.admin(ctx, func(a sarama.ClusterAdmin) error {
		var refused []error
		for _, s := range t.specs() {
			changes, err := ensureTopic(a, s, t.Replication, dryRun)
			out = append(out, changes...)
			switch {
			case err != nil && dryRun && errors.Is(err, sarama.ErrTopicAuthorizationFailed):
				refused = append(refused, err) // the others may be looked at
			case err != nil:
				return err
			}
		}
		return errors.Join(refused...)
	})
	for _, s := range t.specs() {
		c.forget(s.name)
	}
	return out, err
}

// Check returns the differences that Ensure would put right or report, and changes nothing.
func (c *Client) Check(ctx context.Context, t Topics) ([]Change, error) {
	return c.Ensure(ctx, t, true)
}

// admin runs f with Sarama's administrator, whose connections end with ctx.
func (c *Client) admin(ctx context.Context, f func(sarama.ClusterAdmin) error) error {
	conf, err := c.sarama(c.cfg.RequestTimeout)
	if err != nil {
		return fmt.Errorf("connect to Kafka as administrator: %w", err)
	}
	conf.Net.Proxy.Enable = true
	conf.Net.Proxy.Dialer = abortable(ctx, c.cfg.DialTimeout)
	a, err := sarama.NewClusterAdmin(c.addrs(), conf)
	if err != nil {
		return fmt.Errorf("connect to Kafka as administrator: %w", err)
	}
	defer func() { _ = a.Close() }()
	return f(a)
}

func ensureTopic(a sarama.ClusterAdmin, s spec, replication int16, dryRun bool) ([]Change, error) {
	have, err := a.DescribeTopics([]string{s.name})
	if err != nil {
		return nil, &TopicError{s.name, Describe, err}
	}
	if len(have) == 0 || have[0].Err == sarama.ErrUnknownTopicOrPartition {
		return createTopic(a, s, replication, dryRun)
	}
	if have[0].Err != sarama.ErrNoError {
		return nil, &TopicError{s.name, Describe, have[0].Err}
	}
	var out []Change
	if n := len(have[0].Partitions); n != int(s.partitions) {
		out = append(out, Change{Topic: s.name, Setting: "partitions", Have: strconv.Itoa(n),
			Want: strconv.Itoa(int(s.partitions)), Manual: true})
	}
	changes, err := alterTopic(a, s, dryRun)
	return append(out, changes...), err
}

func createTopic(a sarama.ClusterAdmin, s spec, replication int16, dryRun bool) ([]Change, error) {
	change := Change{Topic: s.name, Setting: "topic", Want: fmt.Sprintf("%d partitions", s.partitions)}
	if dryRun {
		return []Change{change}, nil
	}
	entries := map[string]*string{}
	for k, v := range s.settings {
		entries[k] = &v
	}
	err := a.CreateTopic(s.name, &sarama.TopicDetail{NumPartitions: s.partitions, ReplicationFactor: replication,
		ConfigEntries: entries}, false)
	if errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return alterTopic(a, s, dryRun) // somebody else was quicker
	}
	if err != nil {
		return []Change{change}, fmt.Errorf("create topic %s (%d partitions, replication %d): %w", s.name, s.partitions, replication, err)
	}
	change.Applied = true
	return []Change{change}, nil
}

func alterTopic(a sarama.ClusterAdmin, s spec, dryRun bool) ([]Change, error) {
	have, err := describe(a, s.name, slices.Sorted(maps.Keys(s.settings)))
	if err != nil {
		return nil, &TopicError{s.name, DescribeConfigs, err}
	}
	var out []Change
	alter := map[string]sarama.IncrementalAlterConfigsEntry{}
	for _, k := range slices.Sorted(maps.Keys(s.settings)) {
		if want := s.settings[k]; have[k] != want {
			out = append(out, Change{Topic: s.name, Setting: k, Have: have[k], Want: want})
			alter[k] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &want}
		}
	}
	if dryRun || len(alter) == 0 {
		return out, nil
	}
	if err := a.IncrementalAlterConfig(sarama.TopicResource, s.name, alter, false); err != nil {
		return out, fmt.Errorf("set the settings of topic %s: %w", s.name, err)
	}
	for i := range out {
		out[i].Applied = true
	}
	return out, nil
}

// describe returns a topic's settings: those named, or all.
func describe(a sarama.ClusterAdmin, topic string, names []string) (map[string]string, error) {
	answers, err := a.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic, ConfigNames: names}},
		sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range answers {
		if r.ErrorCode != 0 {
			return nil, fmt.Errorf("%w: %s", r.ErrorCode, r.ErrorMsg)
		}
		for _, e := range r.Configs {
			out[e.Name] = e.Value
		}
	}
	return out, nil
}
