package installation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
)

// topics is the check kafka.topics.
func (c *Checks) topics(ctx context.Context) []checkup.Finding {
	m, err := c.kafka.topicsFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Usage, mayDescribe, err)
	}
	out := judgeTopics(m.changes, began{c.kafka.names(), c.recorded(ctx), c.cfg.Topics.Partitions > 0})
	if m.settings != nil {
		return append(out, c.kafka.cannot(c.kafka.names().Usage, mayConfigs, m.settings)...)
	}
	return checkup.OrOkay(out, "the four topics exist with the settings that they should have")
}

// recorded is the number of partitions that the installation began with; "" where that is not known.
func (c *Checks) recorded(ctx context.Context) string {
	if p, err := c.kafka.policyFacts(ctx); err == nil && p.installation != nil {
		return strconv.Itoa(int(p.installation.Partitions))
	}
	return ""
}

// began is what is known of the number of partitions.
type began struct {
	names    bus.Topics
	recorded string // that the installation began with, "" where that is not known
	asked    bool   // topics.partitions says a number
}

func judgeTopics(changes []bus.Change, b began) []checkup.Finding {
	var out []checkup.Finding
	for _, c := range changes {
		switch {
		case c.Setting == "retention.ms" && longer(c.Have, c.Want):
		case c.Setting == "partitions":
			out = append(out, checkup.Fail(b.mend(c), "%v", c))
		case c.Setting == "topic", harmful(c.Setting):
			out = append(out, checkup.Fail(ensureTopics, "%v", c))
		default:
			out = append(out, checkup.Warn(ensureTopics, "%v", c))
		}
	}
	return out
}

// mend says what to do about another number of partitions. A topic made anew loses what is counted, so a
// number that was only mistyped comes first.
func (b began) mend(c bus.Change) string {
	anew := fmt.Sprintf("make the topic anew with %s partitions while no aggregator and no sidecar runs: what is counted by then is lost", c.Want)
	settable := c.Topic == b.names.Usage || c.Topic == b.names.Decisions
	if !b.asked || !settable || b.recorded != "" && b.recorded != c.Have {
		return anew
	}
	return fmt.Sprintf("set topics.partitions back to %s, here and for the aggregators: nothing is lost. Only if the topic was made with a wrong number: %s", c.Have, anew)
}

// harmful settings lose counts or policies, or set their times wrong; others cost disk or time.
func harmful(setting string) bool {
	return setting == "cleanup.policy" || setting == "message.timestamp.type" || setting == "retention.ms"
}

// longer reports whether a retention keeps more than is wanted, which does no harm. "-1" is for ever.
func longer(have, want string) bool {
	h, err := strconv.ParseInt(have, 10, 64)
	if err != nil {
		return false
	}
	w, err := strconv.ParseInt(want, 10, 64)
	return err == nil && (h < 0 || h > w)
}

const hour = time.Hour

// retention is the check retention: an outage of all aggregators is made good from weir.usage, as far back as that goes.
func (c *Checks) retention(ctx context.Context) []checkup.Finding {
	p, err := c.kafka.policyFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Policies, mayRead, err)
	}
	m, err := c.kafka.topicsFacts(ctx)
	if err == nil {
		err = m.settings
	}
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Usage, mayConfigs, err)
	}
	return judgeRetention(c.kafka.names().Usage, retentionOf(c.kafka.names(), m.changes), needsOf(p.set))
}

// retentionOf is how long the usage topic keeps reports; negative: for ever. Only a difference is told of.
func retentionOf(topics bus.Topics, changes []bus.Change) time.Duration {
	for _, c := range changes {
		if c.Topic == topics.Usage && c.Setting == "retention.ms" {
			if ms, err := strconv.ParseInt(c.Have, 10, 64); err == nil {
				return time.Duration(ms) * time.Millisecond
			}
		}
	}
	return topics.UsageRetention
}

func judgeRetention(topic string, keeps time.Duration, n needs) []checkup.Finding {
	if n.calendar == "" || keeps < 0 || keeps >= hour {
		return []checkup.Finding{checkup.Okay("topic %s keeps reports as long as the policies' limits ask for", topic)}
	}
	return []checkup.Finding{checkup.Warn(
		"topics.usageRetention: 1h in the aggregators' configuration (the chart's value of that name), and weir-aggregator topics ensure",
		"limit %s counts over a calendar's period, and topic %s keeps reports for %v: an outage of all aggregators that lasts longer loses what was counted in it; 1h or more is advised",
		n.calendar, topic, keeps)}
}
