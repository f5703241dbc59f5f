package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
)

// kafka collects what Kafka knows, each fact once.
type kafka struct {
	cfg Config

	client   once[*bus.Client]
	metadata once[*metadata]
	policies once[*policyFacts]
	headers  once[*ownerFacts]
	pods     once[*fleet]

	granted map[string]bool // rights whose command was shown: once is enough
}

var errNoKafka = errors.New("no Kafka is named")

// What to do.
const (
	nameBrokers   = "name the brokers: --kafka-brokers, or kafka.brokers in the file of --config"
	ensureTopics  = "weir-aggregator topics ensure, with the aggregators' configuration"
	lookAtBrokers = "run again with a longer --timeout; then the brokers' logs"
)

// connected returns the client once a broker has answered.
func (k *kafka) connected(ctx context.Context) (*bus.Client, error) {
	return k.client.get(ctx, func(ctx context.Context) (*bus.Client, error) {
		if len(k.cfg.Kafka.Brokers) == 0 {
			return nil, errNoKafka
		}
		conf, reason := k.cfg.Kafka, ""
		conf.State = func(why string) { reason = why }
		c, err := bus.Dial(ctx, conf, zap.NewNop())
		if err != nil && reason != "" {
			return nil, errors.New(reason) // the error says it too, among others
		}
		return c, err
	})
}

func (k *kafka) close() {
	if k.client.fact != nil {
		_ = k.client.fact.Close()
	}
}

// names are the topics' names.
func (k *kafka) names() bus.Topics { return k.cfg.Topics.WithDefaults() }

// The rights of Kafka that checks need, as kafka-acls.sh names them.
const (
	mayRead     = "Read"
	mayDescribe = "Describe"
	mayConfigs  = "DescribeConfigs"
)

// cannot is the finding of a check that lacks a fact: topic could not be used for operation, unless the error itself
// names another.
func (k *kafka) cannot(topic, operation string, err error) []checkup.Finding {
	if several, ok := err.(interface{ Unwrap() []error }); ok && refused(err) {
		var out []checkup.Finding
		for _, one := range several.Unwrap() {
			out = append(out, k.cannot(topic, operation, one)...)
		}
		return out
	}
	var of *bus.TopicError
	if errors.As(err, &of) {
		topic, operation = of.Topic, mayDescribe
		if of.Right == bus.DescribeConfigs {
			operation = mayConfigs
		}
	}
	switch {
	case k.client.err != nil:
		return []checkup.Finding{checkup.Skip("", "Kafka does not answer")}
	case refused(err):
		return []checkup.Finding{checkup.Deny(k.grant(topic, operation), "this user may not %s topic %s", operation, topic)}
	case errors.Is(err, bus.ErrNoTopic) && k.toldMissing(topic):
		return []checkup.Finding{checkup.Skip("", "topic %s does not exist", topic)}
	case errors.Is(err, bus.ErrNoTopic):
		return []checkup.Finding{checkup.Fail(ensureTopics, "topic %s does not exist", topic)}
	}
	return []checkup.Finding{checkup.Fail(lookAtBrokers, "topic %s: %v", topic, err)}
}

// toldMissing reports whether kafka.topics has said that a topic does not exist.
func (k *kafka) toldMissing(topic string) bool {
	return k.metadata.fact != nil && slices.ContainsFunc(k.metadata.fact.changes, func(c bus.Change) bool { return c.Topic == topic && c.Setting == "topic" })
}

// grant is the command that gives this user a right; "" where it was shown already.
func (k *kafka) grant(topic, operation string) string {
	right := operation + " " + topic
	if k.granted[right] {
		return ""
	}
	if k.granted == nil {
		k.granted = map[string]bool{}
	}
	k.granted[right] = true
	who, login := k.cfg.Kafka.SASL.Username, ""
	if who == "" {
		who = "NAME"
	}
	if k.cfg.Kafka.SASL.Mechanism != "" || k.cfg.Kafka.TLS.Enabled {
		login = " --command-config ADMIN.properties"
	}
	return fmt.Sprintf("kafka-acls.sh --bootstrap-server %s%s --add --allow-principal User:%s --operation %s --topic %s; or all of docs/check.md at once: weir-aggregator topics ensure --acls --acl-check User:%s",
		strings.Join(k.cfg.Kafka.Brokers, ","), login, who, operation, topic, who)
}

// refused reports whether Kafka said that this user may not: its error for a topic, a group or the cluster.
func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "not authorized")
}

// reachable is the check kafka.reachable.
func (c *Checks) reachable(ctx context.Context) []checkup.Finding {
	_, err := c.kafka.connected(ctx)
	return judgeReachable(c.cfg.Kafka.Brokers, err)
}

func judgeReachable(brokers []string, err error) []checkup.Finding {
	named := strings.Join(brokers, ", ")
	switch {
	case err == nil:
		return []checkup.Finding{checkup.Okay("%s answers", named)}
	case errors.Is(err, errNoKafka):
		return []checkup.Finding{checkup.Skip(nameBrokers, "%v", err)}
	}
	return []checkup.Finding{checkup.Fail("is the address right, is the broker up, may this machine reach it, and do kafka.tls and kafka.sasl fit its listener?",
		"no broker of %s answers: %v", named, err)}
}

// metadata is what Kafka says of the topics.
type metadata struct {
	// changes are the differences from what they should be; settings is why their settings could not be read.
	changes  []bus.Change
	settings error
	// partitions and ids of usage and decisions.
	usage, decisions     int32
	usageID, decisionsID bus.TopicID
}

// topicsFacts reads metadata. Topics that do not exist have no partitions.
func (k *kafka) topicsFacts(ctx context.Context) (*metadata, error) {
	return k.metadata.get(ctx, func(ctx context.Context) (*metadata, error) {
		client, err := k.connected(ctx)
		if err != nil {
			return nil, err
		}
		m, names := &metadata{}, k.names()
		for _, t := range []struct {
			name  string
			parts *int32
			id    *bus.TopicID
		}{{names.Usage, &m.usage, &m.usageID}, {names.Decisions, &m.decisions, &m.decisionsID}} {
			if *t.parts, err = client.Partitions(ctx, t.name); err == nil {
				*t.id, err = client.TopicID(ctx, t.name)
			}
			if err != nil && !errors.Is(err, bus.ErrNoTopic) {
				return nil, &bus.TopicError{Topic: t.name, Right: bus.Describe, Err: err}
			}
		}
		m.changes, m.settings = client.Check(ctx, k.wanted(ctx, m))
		return m, nil
	})
}

// wanted are the topics as they should be: as many partitions as is said, or else as the installation began with.
func (k *kafka) wanted(ctx context.Context, m *metadata) bus.Topics {
	t := k.cfg.Topics
	if t.Partitions == 0 {
		t.Partitions = m.usage
		if p, err := k.policyFacts(ctx); err == nil && p.installation != nil {
			t.Partitions = int32(p.installation.Partitions) //nolint:gosec // Kafka counts partitions in 32 bits
		}
	}
	return t.WithDefaults()
}
