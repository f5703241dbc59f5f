package statustopic

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

// Decode reads a record that is no tombstone. The pod that it is of is its key.
func Decode(m bus.Message) (*wirev1.PodStatus, error) {
	var s wirev1.PodStatus
	if err := proto.Unmarshal(m.Value, &s); err != nil {
		return nil, fmt.Errorf("offset %d of %s: %w", m.Offset, m.Topic, err)
	}
	if s.Pod == "" || s.Pod != string(m.Key) {
		return nil, fmt.Errorf("offset %d of %s: a record of pod %.100q under the key %.100q", m.Offset, m.Topic, s.Pod, m.Key)
	}
	return &s, nil
}
