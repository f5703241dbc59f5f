package embedded

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Kafka is one broker inside this process. Safe for concurrent use.
type Kafka struct {
	cluster *kfake.Cluster
	stop    chan struct{}
	done    sync.WaitGroup
	once    sync.Once
}

// housekeeping is how often retention and compaction run; the broker does neither by itself.
const housekeeping = 10 * time.Second

// StartKafka starts a broker at addr ("127.0.0.1:9092"; "" or port 0: a free port of 127.0.0.1).
// Topics are not created by using them. Unlike a real broker it keeps producers' timestamps even
// where a topic says LogAppendTime.
func StartKafka(addr string, opts ...kfake.Opt) (*Kafka, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("embedded Kafka: %q is not host:port: %w", addr, err)
	}
	all := []kfake.Opt{kfake.NumBrokers(1), kfake.ListenFn(func(network, _ string) (net.Listener, error) {
		return net.Listen(network, addr)
	})}
	cluster, err := kfake.NewCluster(append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded Kafka at %s: %w", addr, err)
	}
	k := &Kafka{cluster: cluster, stop: make(chan struct{})}
	k.done.Go(k.clean)
	return k, nil
}

func (k *Kafka) clean() {
	t := time.NewTicker(housekeeping)
	defer t.Stop()
	for {
		select {
		case <-k.stop:
			return
		case <-t.C:
			k.cluster.ApplyRetention()
			k.cluster.Compact()
		}
	}
}

// Addr is the broker's host:port.
func (k *Kafka) Addr() string { return k.cluster.ListenAddrs()[0] }

// Cluster is the broker itself, for tests that inject faults.
func (k *Kafka) Cluster() *kfake.Cluster { return k.cluster }

// Close ends the broker and forgets all records. It may be called again.
func (k *Kafka) Close() {
	k.once.Do(func() {
		close(k.stop)
		k.done.Wait()
		k.cluster.Close()
	})
}
