package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
)

// fresh are topics that no other test uses.
func fresh(t *testing.T, c *Client) Topics {
	t.Helper()
	out := Topics{Usage: name(t, "usage"), Decisions: name(t, "decisions"), Policies: name(t, "policies"),
		Status: name(t, "status"), Partitions: 3, Replication: 1}
	t.Cleanup(func() {
		_ = c.admin(context.Background(), func(a sarama.ClusterAdmin) error {
			for _, n := range []string{out.Usage, out.Decisions, out.Policies, out.Status} {
				_ = a.DeleteTopic(n)
			}
			return nil
		})
	})
	return out
}

func texts(changes []Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, c.String())
	}
	return strings.Join(out, "\n")
}

func TestEnsureMakesTheTopicsAsDesigned(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		tops := fresh(t, c)
		planned, err := c.Check(t.Context(), tops)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("topic %s: does not exist, want 3 partitions\ntopic %s: does not exist, want 3 partitions\n"+
			"topic %s: does not exist, want 1 partitions\ntopic %s: does not exist, want 1 partitions",
			tops.Usage, tops.Decisions, tops.Policies, tops.Status)
		if texts(planned) != want {
			t.Errorf("planned\n%s\nwant\n%s", texts(planned), want)
		}
		made, err := c.Ensure(t.Context(), tops, false)
		if err != nil || len(made) != 4 || !made[0].Applied {
			t.Fatalf("made %v, err %v", made, err)
		}
		if left, err := c.Check(t.Context(), tops); err != nil || len(left) != 0 {
			t.Errorf("Ensure returned before the brokers show it: %v, %v", left, err)
		}
		for n, want := range map[string]map[string]string{
			tops.Usage:     {"cleanup.policy": "delete", "retention.ms": "600000", "segment.ms": "60000", "segment.bytes": "67108864", "message.timestamp.type": "LogAppendTime"},
			tops.Decisions: {"cleanup.policy": "delete", "retention.ms": "300000", "segment.ms": "60000", "segment.bytes": "67108864", "message.timestamp.type": "LogAppendTime"},
			tops.Policies:  {"cleanup.policy": "compact"},
			tops.Status:    {"cleanup.policy": "compact", "segment.ms": "300000"},
		} {
			have := settings(t, c, n)
			for k, v := range want {
				if have[k] != v {
					t.Errorf("%s: %s is %q, want %q", n, k, have[k], v)
				}
			}
		}
	})
}

func settings(t *testing.T, c *Client, topic string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := c.admin(t.Context(), func(a sarama.ClusterAdmin) error {
		have, err := describe(a, topic, nil)
		for k, v := range have {
			out[k] = v
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEnsureReportsAndMendsWhatDiffers(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		tops := fresh(t, c)
		makeTopic(t, c, tops.Usage, 2, "retention.ms", "604800000", "message.timestamp.type", "LogAppendTime",
			"segment.ms", "60000", "segment.bytes", "67108864")
		if _, err := c.Ensure(t.Context(), tops, false); err != nil {
			t.Fatal(err)
		}
		if got := settings(t, c, tops.Usage)["retention.ms"]; got != "600000" {
			t.Errorf("retention.ms is %s after Ensure", got)
		}
		want := fmt.Sprintf("topic %s: partitions is 2, want 3", tops.Usage)
		eventually(t, "only this is left: "+want, func() bool { // a new topic is not known everywhere at once
			left, err := c.Check(t.Context(), tops)
			return err == nil && texts(left) == want && left[0].Manual && !left[0].Applied
		})
	})
}

func TestCheckSaysTheDifferenceAndChangesNothing(t *testing.T) {
	_, c := fake(t)
	tops := fresh(t, c)
	if _, err := c.Ensure(t.Context(), tops, false); err != nil {
		t.Fatal(err)
	}
	week := "604800000"
	err := c.admin(t.Context(), func(a sarama.ClusterAdmin) error {
		return a.IncrementalAlterConfig(sarama.TopicResource, tops.Usage,
			map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Value: &week}}, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := c.Check(t.Context(), tops)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("topic %s: retention.ms is 604800000, want 600000", tops.Usage); texts(got) != want {
			t.Errorf("got %q, want %q", texts(got), want)
		}
	}
}

// DESIGN 7: each program has the rights that it needs, and no more.
func TestRulesAreTheLeastRights(t *testing.T) {
	p := Principals{Sidecar: "User:s", Aggregator: "User:a", Controller: "User:c", CLI: "User:w", Check: "User:k", Group: "g"}
	var got []string
	for _, r := range p.Rules(Topics{}) {
		got = append(got, r.String())
	}
	slices.Sort(got)
	want := []string{
		"User:a may describe the settings of topic weir.decisions", "User:a may describe the settings of topic weir.policies",
		"User:a may describe the settings of topic weir.status", "User:a may describe the settings of topic weir.usage",
		"User:a may read group g",
		"User:a may read topic weir.decisions", "User:a may read topic weir.policies",
		"User:a may read topic weir.status", "User:a may read topic weir.usage",
		"User:a may write topic weir.decisions", "User:a may write topic weir.policies",
		"User:a may write topic weir.status", "User:a may write topic weir.usage",
		"User:c may read topic weir.policies", "User:c may read topic weir.status", "User:c may write topic weir.policies",
		"User:k may describe the settings of topic weir.decisions", "User:k may describe the settings of topic weir.policies",
		"User:k may describe the settings of topic weir.status", "User:k may describe the settings of topic weir.usage",
		"User:k may describe topic weir.usage",
		"User:k may read topic weir.decisions", "User:k may read topic weir.policies", "User:k may read topic weir.status",
		"User:s may read topic weir.decisions", "User:s may read topic weir.policies",
		"User:s may write topic weir.status", "User:s may write topic weir.usage",
		"User:w may read topic weir.policies", "User:w may read topic weir.status", "User:w may write topic weir.policies",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// docs/check.md tells people by hand what --acl-check gives.
func TestTheRulesOfTheCheckAreTheDocumentedOnes(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../../docs/check.md"), "| topic | operations |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	operations := map[string]Right{"Read": Read, "Describe": Describe, "DescribeConfigs": DescribeConfigs}
	var want, got []string
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		for _, o := range strings.Split(cells[2], ",") {
			want = append(want, Rule{Principal: "User:k", Right: operations[strings.TrimSpace(o)], Name: "weir." + strings.TrimSpace(cells[1])}.String())
		}
	}
	for _, r := range (Principals{Check: "User:k"}).Rules(Topics{}) {
		got = append(got, r.String())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\ndocumented\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// With its rules a sidecar can do its work: write usage, know its topic id, read decisions; and it
// cannot write decisions nor read others' usage.
func TestACLsLetASidecarWorkAndNoMore(t *testing.T) {
	k, root := secured(t, kfake.EnableACLs(), kfake.User(Plain, "sidecar", "pw"))
	tops := Topics{Partitions: 1, Replication: 1}.WithDefaults()
	if _, err := root.Ensure(t.Context(), tops, false); err != nil {
		t.Fatal(err)
	}
	user := func() *Client { return dial(t, saslConfig(t, k, Plain, "sidecar", "pw")) }
	if _, err := user().TopicID(t.Context(), tops.Usage); err == nil {
		t.Fatal("rights without a rule: the test proves nothing")
	}
	if _, err := root.EnsureACLs(t.Context(), tops, Principals{Sidecar: "User:sidecar"}, false); err != nil {
		t.Fatal(err)
	}
	c := user()
	if _, err := c.TopicID(t.Context(), tops.Usage); err != nil {
		t.Error(err)
	}
	mustPut(t, c, tops.Usage, 0, "report")
	mustPut(t, root, tops.Decisions, 0, "batch")
	r, got := taped(c, tops.Decisions, map[int32]From{0: {}})
	run(t, r.Run)
	eventually(t, "the batch is read", func() bool { return got.has("v:batch") })
	w := NewWriter(c, WriterConfig{})
	defer w.Close()
	if a := put(t, w, tops.Decisions, 0, "forged"); a.Err == nil {
		t.Error("a sidecar wrote a decision")
	}
	failed := make(chan error, 100)
	usage := NewReader(c, ReaderConfig{Topic: tops.Usage, Partitions: map[int32]From{0: {}},
		Handle: func(Message) { t.Error("a sidecar read usage") }, Error: func(_ int32, err error) { failed <- err }})
	run(t, usage.Run)
	if err := <-failed; !errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		t.Error(err)
	}
}

// With its rules an aggregator's user can look at the topics' settings, and changes none.
func TestACLsLetAnAggregatorCheckTopics(t *testing.T) {
	k, root := secured(t, kfake.EnableACLs(), kfake.User(Plain, "aggregator", "pw"))
	tops := Topics{Partitions: 1, Replication: 1}.WithDefaults()
	if _, err := root.Ensure(t.Context(), tops, false); err != nil {
		t.Fatal(err)
	}
	c := dial(t, saslConfig(t, k, Plain, "aggregator", "pw"))
	if _, err := c.Check(t.Context(), tops); err == nil {
		t.Fatal("settings are shown without a rule: the test proves nothing")
	}
	if _, err := root.EnsureACLs(t.Context(), tops, Principals{Aggregator: "User:aggregator"}, false); err != nil {
		t.Fatal(err)
	}
	if changes, err := c.Check(t.Context(), tops); err != nil || len(changes) > 0 {
		t.Errorf("%v, %v", changes, err)
	}
	tops.UsageRetention *= 2
	if _, err := c.Ensure(t.Context(), tops, false); err == nil {
		t.Error("an aggregator changed a topic's settings")
	}
}
