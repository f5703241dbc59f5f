package parts

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Ports are taken from below the range that the kernel gives to outgoing
// connections. A port that ":0" would give lies within that range: while its
// server is down (a test of a restart) any connection of this machine may get
// it as its own end, and a client that keeps dialling it can even be connected
// to itself.
const (
	lowestPort      = 20000
	defaultHighPort = 32768
)

var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: map[int]bool{}}

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on, and that
// it did not return before in this process. Another process may take it before
// the caller does, so who starts a server on it tries again with another port.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	high := firstEphemeralPort()
	for range 1000 {
		port := lowestPort + rand.IntN(high-lowestPort)
		if !ports.given[port] && canListen(port) {
			ports.given[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", lowestPort, high)
}

// freePorts returns n different ones.
func freePorts(n int) ([]int, error) {
	all := make([]int, n)
	for i := range all {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		all[i] = port
	}
	return all, nil
}

func canListen(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func firstEphemeralPort() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return defaultHighPort
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\t")
	if port, err := strconv.Atoi(first); err == nil && port > lowestPort+1000 {
		return port
	}
	return defaultHighPort
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
