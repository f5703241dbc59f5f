package parts

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"
)

// RedisOpts configures a Redis. The zero value is one that keeps nothing on
// disk.
type RedisOpts struct {
	// Args are added to the command line, and win over what is set here.
	Args []string
}

// Redis is a real Redis server. Without persistence in its Args it is empty
// after Restart.
type Redis struct{ *Server }

// StartRedis starts a Redis and returns when it answers.
func StartRedis(t T, opts RedisOpts) *Redis {
	t.Helper()
	program := onPath(t, "redis", "redis-server")
	dir := t.TempDir()
	return &Redis{startServer(t, plan{
		name:  "redis",
		ports: 1,
		command: func(ports []int) (*exec.Cmd, error) {
			args := []string{
				"--bind", "127.0.0.1",
				"--port", strconv.Itoa(ports[0]),
				"--dir", dir,
				"--save", "",
				"--appendonly", "no",
				"--daemonize", "no",
			}
			return exec.Command(program, append(args, opts.Args...)...), nil
		},
		ready: func(ports []int) error { return redisAnswers(loopback(ports[0])) },
	})}
}

// Do sends one command on a connection of its own and returns the answer: a
// simple string, a number's digits, or a bulk string. It reads no arrays. An
// error that Redis answers is an error.
func (r *Redis) Do(args ...string) (string, error) { return redisDo(r.Addr(), args...) }

func redisAnswers(addr string) error {
	answer, err := redisDo(addr, "PING")
	if err == nil && answer != "PONG" {
		err = fmt.Errorf("answered %q", answer)
	}
	return err
}

func redisDo(addr string, args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write(respCommand(args)); err != nil {
		return "", err
	}
	return respAnswer(bufio.NewReader(conn))
}
