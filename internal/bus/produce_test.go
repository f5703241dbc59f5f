package bus

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// DESIGN 3: a record waits for all in-sync replicas unless a setting says otherwise, and for 2 s at most.
func TestARecordWaitsForAllReplicasWithinItsTimeout(t *testing.T) {
	for acks, want := range map[string]sarama.RequiredAcks{"": sarama.WaitForAll, AcksAll: sarama.WaitForAll, AcksLeader: sarama.WaitForLocal} {
		l := &lane{laneKey: laneKey{topic: "weir.usage"}, writer: &Writer{client: &Client{cfg: Config{Acks: acks}.WithDefaults()}}}
		if req := l.request(record{value: []byte("report")}, time.UnixMilli(1)); req.RequiredAcks != want || req.Timeout != 2000 {
			t.Errorf("acks %q: %d within %d ms, want %d within 2000", acks, req.RequiredAcks, req.Timeout, want)
		}
	}
}
