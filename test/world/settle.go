package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/IBM/sarama"

	"github.com/weirproxy/weir/test/parts"
)

const usageTopic = "weir.usage"

// CounterName is how tests name a counter: by its limit and the value that it counts by, "" for none.
type CounterName struct{ Limit, Client string }

// Settle waits, by what the programs say of themselves, until all that the pods have counted is
// acknowledged, read by its owner and written to Redis. Totals may be compared to the unit then: what
// is missing is lost. No load may be under way.
func (w *World) Settle() {
	w.T.Helper()
	parts.Eventually(w.T, Patience, "every pod's counts acknowledged", w.acknowledged)
	ends, err := w.usageEnds()
	w.Must(err)
	parts.Eventually(w.T, Patience, "all usage in Redis", func() error { return w.stored(ends) })
}

// acknowledged is an error while a pod has counted what no report that was acknowledged holds.
func (w *World) acknowledged() error {
	for _, p := range w.Pods {
		var view struct {
			Counters []struct {
				Limit string
				Dirty bool
			}
		}
		if err := getJSON("http://"+p.Admin+"/debug/counters?n=1000", &view); err != nil {
			return err
		}
		for _, c := range view.Counters {
			if c.Dirty {
				return fmt.Errorf("%s: a counter of %s is not acknowledged", p.Name, c.Limit)
			}
		}
	}
	return nil
}

// usageEnds returns the offset that each partition's next report will have, past the proxy.
func (w *World) usageEnds() (map[int32]int64, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	c, err := sarama.NewClient([]string{w.Kafka.Addr()}, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	partitions, err := c.Partitions(usageTopic)
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for _, p := range partitions {
		if ends[p], err = c.GetOffset(usageTopic, p, sarama.OffsetNewest); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// stored is an error while a partition has no live owner that wrote all below its end to Redis.
func (w *World) stored(ends map[int32]int64) error {
	done := map[int32]bool{}
	var seen []string
	for _, o := range w.Owners {
		for _, h := range o.Holdings() {
			done[h.Partition] = done[h.Partition] || h.State == "live" && h.Gauges.Stored >= ends[h.Partition]-1
			seen = append(seen, fmt.Sprintf("%s %d %s stored %d", o.Name, h.Partition, h.State, h.Gauges.Stored))
		}
	}
	for p, end := range ends {
		if !done[p] {
			return fmt.Errorf("partition %d ends at %d; %s", p, end, strings.Join(seen, ", "))
		}
	}
	return nil
}

// Holding is a partition as an aggregator says that it holds it.
type Holding struct {
	Partition int32
	State     string
	Gauges    struct{ Stored int64 }
}

// Holdings asks an aggregator for its partitions; none where it does not answer.
func (o *Owner) Holdings() (out []Holding) {
	_ = getJSON("http://"+o.Admin+"/debug/partitions", &out) // it may have been killed
	return out
}

// Owns reports whether an aggregator decides the partition that all reports go to.
func (o *Owner) Owns(partition int32) bool {
	for _, h := range o.Holdings() {
		if h.Partition == partition && h.State == "live" {
			return true
		}
	}
	return false
}

// OwnerTotals returns each counter's total as its owner has it. One that no report has named since its
// owner took over is not among them.
func (w *World) OwnerTotals() (map[CounterName]uint64, error) {
	out := map[CounterName]uint64{}
	answered := false
	for _, o := range w.Owners {
		var found []struct {
			Limit, Dimensions, Phase string
			Total                    uint64
		}
		if getJSON("http://"+o.Admin+"/debug/counters?most=1000", &found) != nil {
			continue // it may have been killed
		}
		answered = true
		for _, c := range found {
			if c.Phase != "live" {
				continue
			}
			_, client, _ := strings.Cut(c.Dimensions, "=")
			out[CounterName{path.Base(c.Limit), client}] += c.Total
		}
	}
	if !answered {
		return nil, errors.New("no aggregator answers")
	}
	return out, nil
}

// StoredTotals returns each counter's total as Redis has it.
func (w *World) StoredTotals(limits ...string) (map[CounterName]uint64, error) {
	out := map[CounterName]uint64{}
	for _, limit := range limits {
		found, err := w.Counters(limit)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			n := CounterName{Limit: limit}
			if len(c.Identity.Dimensions) > 0 {
				n.Client = c.Identity.Dimensions[0].Value
			}
			out[n] += c.Total
		}
	}
	return out, nil
}

func getJSON(url string, into any) error {
	status, body, err := Get(url)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: %d %s", url, status, body)
	}
	return json.Unmarshal([]byte(body), into)
}
