package policytopic

import (
	"context"
	"fmt"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

// sender is what publishing needs of bus.Writer.
type sender interface {
	Send(topic string, partition int32, key, value []byte, done func(bus.Ack)) error
}

// Publish sends one record and waits for its acknowledgement. It returns the record's offset, which is
// the policy's version. After an error the record may be in the topic all the same.
func Publish(ctx context.Context, w sender, topic string, r Record) (version int64, err error) {
	return send(ctx, w, topic, r.Key.String(), r.Value)
}

// PublishInstallation writes the installation's record.
func PublishInstallation(ctx context.Context, w sender, topic string, i *wirev1.Installation) error {
	value, err := InstallationValue(i)
	if err != nil {
		return err
	}
	_, err = send(ctx, w, topic, InstallationKey, value)
	return err
}

func send(ctx context.Context, w sender, topic, key string, value []byte) (int64, error) {
	acked := make(chan bus.Ack, 1)
	if err := w.Send(topic, 0, []byte(key), value, func(a bus.Ack) { acked <- a }); err != nil {
		return 0, fmt.Errorf("publish %s: %w", key, err)
	}
	select {
	case a := <-acked:
		if a.Err != nil {
			return 0, fmt.Errorf("publish %s: %w", key, a.Err)
		}
		return a.Offset, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("publish %s: %w", key, context.Cause(ctx))
	}
}
