package parts

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// StartSentinel starts a sentinel that watches master under the given name, and returns when it answers.
// It is the only one, so it never fails over: there is no replica.
func StartSentinel(t T, name string, master *Redis) *Redis {
	t.Helper()
	program := onPath(t, "redis", "redis-server")
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf") // the sentinel keeps its state in it
	if err := writeSentinel(file, name, master.Addr()); err != nil {
		t.Fatalf("start sentinel: %v", err)
	}
	return &Redis{startServer(t, plan{
		name:  "sentinel",
		ports: 1,
		command: func(ports []int) (*exec.Cmd, error) {
			return exec.Command(program, file, "--sentinel",
				"--bind", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--dir", dir), nil
		},
		ready: func(ports []int) error { return redisAnswers(loopback(ports[0])) },
	})}
}

func writeSentinel(file, name, master string) error {
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return err
	}
	return os.WriteFile(file, fmt.Appendf(nil, "sentinel monitor %s %s %s 1\n", name, host, port), 0o600)
}
