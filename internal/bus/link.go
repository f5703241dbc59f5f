package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/IBM/sarama"
)

// link is one connection to one broker. Kafka answers a connection's requests one after the other,
// so whatever waits at the broker (a fetch, a join, a record's acknowledgement) has a link of its
// own. All use is by one goroutine; abort alone may come from any.
type link struct {
	addr   string
	broker *sarama.Broker
	abort  context.CancelFunc
}

// dialFunc makes connections for Sarama.
type dialFunc func(network, addr string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (f dialFunc) Dial(network, addr string) (net.Conn, error) { return f(network, addr) }

// abortable dials so that the end of ctx breaks the dialling and the connection itself. Sarama
// cannot be interrupted otherwise: its calls hold the broker's lock until an answer or a time-out.
func abortable(ctx context.Context, timeout time.Duration) dialFunc {
	return func(network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		return conn, nil
	}
}

// open connects to addr, authenticated, or fails; answers may take up to read. ctx bounds the
// opening only.
func (c *Client) open(ctx context.Context, addr string, read time.Duration) (*link, error) {
	conf, err := c.sarama(read)
	if err != nil {
		return nil, fmt.Errorf("connect to Kafka broker %s: %w", addr, err)
	}
	life, abort := context.WithCancel(context.Background())
	conf.Net.Proxy.Enable = true
	conf.Net.Proxy.Dialer = abortable(life, c.cfg.DialTimeout)
	l := &link{addr: addr, broker: sarama.NewBroker(addr), abort: abort}
	err = l.do(ctx, func(b *sarama.Broker) error {
		if err := b.Open(conf); err != nil {
			return err
		}
		up, err := b.Connected()
		if err == nil && !up {
			err = errors.New("the connection was closed while it was made")
		}
		return err
	})
	if err != nil {
		l.close()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("it closed the connection; does its listener want other tls or sasl settings, or another user or password? %w", err)
		}
		return nil, fmt.Errorf("connect to Kafka broker %s: %w", addr, err)
	}
	return l, nil
}

// do calls f with the broker; the end of ctx breaks the connection and so ends the call.
func (l *link) do(ctx context.Context, f func(*sarama.Broker) error) error {
	stop := context.AfterFunc(ctx, l.abort)
	err := f(l.broker)
	if !stop() && err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// close ends the connection at once. Safe on nil.
func (l *link) close() {
	if l == nil {
		return
	}
	l.abort()
	_ = l.broker.Close()
}
