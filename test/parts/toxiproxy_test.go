package parts_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/weirproxy/weir/test/parts"
)

// asker keeps one connection to a Redis, to see what becomes of it.
type asker struct {
	net.Conn
	answers *bufio.Reader
}

func ask(t *testing.T, addr string) *asker {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &asker{conn, bufio.NewReader(conn)}
}

// ping waits for the answer as long as given.
func (a *asker) ping(within time.Duration) error {
	if err := a.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := a.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err := a.answers.ReadString('\n')
	return err
}

func TestProxyDelaysSilencesAndCuts(t *testing.T) {
	redis := parts.StartRedis(t, parts.RedisOpts{})
	proxy := parts.StartToxiproxy(t).Proxy("redis")
	proxy.To(redis.Addr())
	const patience = 30 * time.Second
	healthy := func(a *asker) {
		t.Helper()
		if err := a.ping(patience); err != nil {
			t.Fatal(err)
		}
	}
	a := ask(t, proxy.Addr())
	healthy(a)

	proxy.Add(parts.Latency(50 * time.Millisecond))
	began := time.Now()
	healthy(a)
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("a round trip took %v at 50 ms each way", took)
	}
	proxy.Remove(parts.Latency(50 * time.Millisecond))

	proxy.Add(parts.Silence())
	if err := a.ping(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("in silence: %v", err)
	}
	proxy.Remove(parts.Silence())
	if err := a.ping(patience); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after the silence: %v", err)
	}

	a = ask(t, proxy.Addr())
	healthy(a)
	proxy.Cut()
	if err := a.ping(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("on a connection that was cut: %v", err)
	}
	healthy(ask(t, proxy.Addr()))

	proxy.Down()
	if _, err := net.Dial("tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while it is down: %v", err)
	}
	proxy.Up()
	healthy(ask(t, proxy.Addr()))
}

// Who comes by the proxy is told to keep to it, who comes straight is not.
func TestKafkaKeepsClientsToTheirProxy(t *testing.T) {
	proxy := parts.StartToxiproxy(t).Proxy("kafka")
	kafka := parts.StartKafka(t, parts.KafkaOpts{Via: proxy.Addr()})
	proxy.To(kafka.Behind())
	for _, addr := range []string{proxy.Addr(), kafka.Addr()} {
		config := sarama.NewConfig()
		config.Version = sarama.V4_0_0_0
		client, err := sarama.NewClient([]string{addr}, config)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range client.Brokers() {
			if b.Addr() != addr {
				t.Errorf("who comes by %s is sent to %s", addr, b.Addr())
			}
		}
		if len(client.Brokers()) == 0 {
			t.Error("no brokers")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
