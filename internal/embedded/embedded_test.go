package embedded

import (
	"errors"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServersListenWhereTheyAreTold(t *testing.T) {
	type server interface {
		Addr() string
		Close()
	}
	for name, start := range map[string]func(string) (server, error){
		"kafka": func(a string) (server, error) { return StartKafka(a) },
		"redis": func(a string) (server, error) { return StartRedis(a) },
	} {
		t.Run(name, func(t *testing.T) {
			first, err := start("")
			if err != nil {
				t.Fatal(err)
			}
			addr := first.Addr()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			if _, err := start(addr); err == nil {
				t.Error("two servers at one address")
			}
			first.Close()
			first.Close()
			again, err := start(addr)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if again.Addr() != addr {
				t.Errorf("at %s, want %s", again.Addr(), addr)
			}
		})
	}
}

func TestNonsenseAddressIsAnError(t *testing.T) {
	if _, err := StartKafka("nowhere"); err == nil {
		t.Error("kafka: no error")
	}
	if _, err := StartRedis("nowhere"); err == nil {
		t.Error("redis: no error")
	}
}

func TestRedisForgetsOnFlush(t *testing.T) {
	r, err := StartRedis("")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Server().Set("a", "b"); err != nil {
		t.Fatal(err)
	}
	r.Flush()
	if _, err := r.Server().Get("a"); !errors.Is(err, miniredis.ErrKeyNotFound) {
		t.Errorf("err %v", err)
	}
}
