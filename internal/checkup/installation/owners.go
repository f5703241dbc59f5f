package installation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/checkup"
)

// readBack is how far before the newest header owners are listened to, as a new sidecar does.
const readBack = 6 * time.Second

// header is what is kept of one batch.
type header struct {
	*wirev1.Header
	appended time.Time
	live     bool // appended while it was listened to
}

// ownerFacts are the headers of each partition, in the order of the log.
type ownerFacts struct {
	partitions int32
	headers    map[int32][]header
	usageID    bus.TopicID
	now        time.Time // append time of the newest live header; zero: there was none
}

func (k *kafka) ownerFacts(ctx context.Context) (*ownerFacts, error) {
	return k.headers.get(ctx, func(ctx context.Context) (*ownerFacts, error) {
		m, err := k.topicsFacts(ctx)
		if err != nil {
			return nil, err
		}
		if m.decisions == 0 {
			return nil, fmt.Errorf("topic %s %w", k.names().Decisions, bus.ErrNoTopic)
		}
		o := &ownerFacts{partitions: m.decisions, headers: map[int32][]header{}, usageID: m.usageID}
		from := map[int32]bus.From{}
		for p := range m.decisions {
			from[p] = bus.From{Age: readBack}
		}
		return o, k.read(ctx, whole{topic: k.names().Decisions, from: from, linger: k.cfg.Watch, handle: o.take, enough: o.enough})
	})
}

func (o *ownerFacts) take(m bus.Message, live bool) {
	var batch wirev1.DecisionBatch
	if proto.Unmarshal(m.Value, &batch) != nil || batch.Header == nil {
		return
	}
	if live && m.Appended.After(o.now) {
		o.now = m.Appended
	}
	o.headers[m.Partition] = append(o.headers[m.Partition], header{batch.Header, m.Appended, live})
}

// enoughHeaders of a partition show a second owner too: it ticks a quarter as often as one that is busy.
const enoughHeaders = 20

// enough reports whether every partition has been heard of enough.
func (o *ownerFacts) enough() bool {
	for p := range o.partitions {
		if n := len(o.headers[p]); n < enoughHeaders || !o.headers[p][n-enoughHeaders].live {
			return false
		}
	}
	return true
}

// owners is the check owners.
func (c *Checks) owners(ctx context.Context) []checkup.Finding {
	o, err := c.kafka.ownerFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Decisions, mayRead, err)
	}
	fingerprint, _ := c.Fingerprint(ctx)
	return judgeOwners(o, fingerprint)
}

// judgeOwners: fingerprint is the installation's, 0: not known.
func judgeOwners(o *ownerFacts, fingerprint uint32) []checkup.Finding {
	problems, owned := map[string][]int32{}, map[string]int{}
	fixes := map[string]string{}
	for p := range o.partitions {
		text, fix := judgePartition(o.headers[p], o.usageID, fingerprint)
		if text != "" {
			problems[text], fixes[text] = append(problems[text], p), fix
			continue
		}
		owned[o.headers[p][len(o.headers[p])-1].Instance]++
	}
	var out []checkup.Finding
	for _, text := range slices.Sorted(maps.Keys(problems)) {
		out = append(out, checkup.Fail(fixes[text], "%s: %s", partitionsText(problems[text]), text))
	}
	return checkup.OrOkay(out, "%s, each with an owner whose headers are fresh: %s", checkup.Many(int(o.partitions), "partition"), shares(owned))
}

// judgePartition says what is wrong with a partition's owner; "" nothing.
func judgePartition(headers []header, usage bus.TopicID, fingerprint uint32) (text, fix string) {
	start := "start weir-aggregator with enough instances; its log and /readyz say what it waits for"
	if len(headers) == 0 {
		return "no owner, no header in the topic: nothing is decided, sidecars go by their local share", start
	}
	last := headers[len(headers)-1]
	switch {
	case !last.live:
		return fmt.Sprintf("the owner %s is silent since %s: sidecars go by their local share", last.Instance, last.appended.UTC().Format(time.RFC3339)), start
	case bus.TopicID(last.LogId) != usage:
		return fmt.Sprintf("the owner %s speaks of another usage topic than the one that is there", last.Instance), "restart that aggregator"
	case fingerprint != 0 && last.KeyFingerprint != fingerprint:
		return fmt.Sprintf("the owner %s has another identity key (fingerprint %08x) than the installation (%08x)", last.Instance, last.KeyFingerprint, fingerprint), sameKey
	}
	if zombie := twoOwners(headers); zombie != "" {
		return zombie, "end the older one; run again: one that has just lost its partition stops by itself"
	}
	return "", ""
}

// twoOwners finds an owner that still goes on after a newer one has begun. One late header may have been under way.
func twoOwners(headers []header) string {
	newest, late := headers[0], map[string]int{}
	for _, h := range headers {
		switch {
		case string(h.LogId) != string(newest.LogId), h.Epoch > newest.Epoch:
			newest, late = h, map[string]int{}
		case h.Epoch < newest.Epoch && h.live:
			late[h.Instance]++
		}
	}
	for _, instance := range slices.Sorted(maps.Keys(late)) {
		if late[instance] > 1 {
			return fmt.Sprintf("two owners: %s still decides after %s has taken over", instance, newest.Instance)
		}
	}
	return ""
}

// shares is who owns how many partitions.
func shares(owned map[string]int) string {
	var out []string
	for _, who := range slices.Sorted(maps.Keys(owned)) {
		out = append(out, fmt.Sprintf("%s %d", orElse(who, "unnamed"), owned[who]))
	}
	return strings.Join(out, ", ")
}

// partitionsText names partitions, runs of them by their ends.
func partitionsText(ps []int32) string {
	var runs []string
	for i := 0; i < len(ps); {
		j := i
		for j+1 < len(ps) && ps[j+1] == ps[j]+1 {
			j++
		}
		if j == i {
			runs = append(runs, fmt.Sprint(ps[i]))
		} else {
			runs = append(runs, fmt.Sprintf("%d-%d", ps[i], ps[j]))
		}
		i = j + 1
	}
	if len(ps) == 1 {
		return "partition " + runs[0]
	}
	return "partitions " + strings.Join(runs, ", ")
}
