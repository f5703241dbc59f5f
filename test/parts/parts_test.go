package parts_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/weirproxy/weir/test/parts"
)

// gone fails the test unless no process has this id any more.
func gone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}

func TestKafkaKeepsRecordsOverKillAndStop(t *testing.T) {
	var pids []int
	t.Run("broker", func(t *testing.T) {
		kafka := parts.StartKafka(t, parts.KafkaOpts{})
		pids = append(pids, kafka.PID())
		createTopic(t, kafka.Addr(), "first")
		if kafka.CPU() <= 0 || kafka.RSS() <= 0 {
			t.Errorf("CPU %v, RSS %d", kafka.CPU(), kafka.RSS())
		}

		addr := kafka.Addr()
		kafka.Restart()
		pids = append(pids, kafka.PID())
		if kafka.Addr() != addr {
			t.Errorf("address changed from %s to %s", addr, kafka.Addr())
		}
		createTopic(t, kafka.Addr(), "second")

		kafka.Stop()
		gone(t, kafka.PID())
		kafka.Start()
		pids = append(pids, kafka.PID())
		if topics := listTopics(t, kafka.Addr()); len(topics) != 2 {
			t.Errorf("topics after two restarts: %v", topics)
		}
	})
	for _, pid := range pids {
		gone(t, pid)
	}
}

func admin(t *testing.T, addr string) sarama.ClusterAdmin {
	t.Helper()
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.AllowAutoTopicCreation = false
	client, err := sarama.NewClusterAdmin([]string{addr}, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func createTopic(t *testing.T, addr, name string) {
	t.Helper()
	detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}
	if err := admin(t, addr).CreateTopic(name, detail, false); err != nil {
		t.Fatal(err)
	}
}

func listTopics(t *testing.T, addr string) map[string]sarama.TopicDetail {
	t.Helper()
	topics, err := admin(t, addr).ListTopics()
	if err != nil {
		t.Fatal(err)
	}
	return topics
}

func TestKafkasHaveClustersOfTheirOwn(t *testing.T) {
	one := parts.StartKafka(t, parts.KafkaOpts{Properties: map[string]string{"num.io.threads": "3"}})
	two := parts.StartKafka(t, parts.KafkaOpts{Heap: "384m"})
	if a, b := clusterID(t, one.Addr()), clusterID(t, two.Addr()); a == b {
		t.Errorf("both clusters are called %s", a)
	}
}

func clusterID(t *testing.T, addr string) string {
	t.Helper()
	broker := sarama.NewBroker(addr)
	if err := broker.Open(sarama.NewConfig()); err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	answer, err := broker.GetMetadata(&sarama.MetadataRequest{Version: 5})
	if err != nil {
		t.Fatal(err)
	}
	return *answer.ClusterID
}

func TestRedisIsEmptyAfterRestart(t *testing.T) {
	redis := parts.StartRedis(t, parts.RedisOpts{})
	do(t, redis, "OK", "SET", "a", "1")
	do(t, redis, "1", "GET", "a")
	redis.Restart()
	do(t, redis, "0", "DBSIZE")
	redis.Stop()
	gone(t, redis.PID())
	if answer, err := redis.Do("PING"); err == nil {
		t.Errorf("a stopped server answered %q", answer)
	}
	redis.Start()
	do(t, redis, "PONG", "PING")
}

func TestRedisWithPersistenceKeepsItsKeys(t *testing.T) {
	redis := parts.StartRedis(t, parts.RedisOpts{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	do(t, redis, "OK", "SET", "a", "1")
	redis.Restart()
	do(t, redis, "1", "GET", "a")
}

func TestFrozenRedisAnswersOnceResumed(t *testing.T) {
	redis := parts.StartRedis(t, parts.RedisOpts{})
	redis.Pause()
	answered := make(chan error, 1)
	go func() {
		_, err := redis.Do("SET", "a", "1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("a frozen server answered (%v)", err)
	case <-time.After(100 * time.Millisecond):
		redis.Resume()
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}

func do(t *testing.T, redis *parts.Redis, want string, command ...string) {
	t.Helper()
	got, err := redis.Do(command...)
	if err != nil || got != want {
		t.Fatalf("%v = %q, %v; want %q", command, got, err, want)
	}
}

func TestRedisClusterSpreadsKeys(t *testing.T) {
	nodes := parts.StartRedisCluster(t)
	served := 0
	for _, node := range nodes {
		if _, err := node.Do("SET", "{weir:3}:a", "1"); err == nil {
			served++
		}
	}
	if served != 1 {
		t.Errorf("%d of %d nodes took the same key", served, len(nodes))
	}
}

func TestRunCleansUpAfterACommand(t *testing.T) {
	var dir string
	var pid int
	err := parts.Run(func(t parts.T) {
		dir = t.TempDir()
		redis := parts.StartRedis(t, parts.RedisOpts{})
		pid = redis.PID()
		t.Fatalf("failed on purpose: %v", syscall.EBADF)
	})
	if err == nil || err.Error() != fmt.Sprintf("failed on purpose: %v", syscall.EBADF) {
		t.Errorf("Run returned %v", err)
	}
	gone(t, pid)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("temporary directory is still there (%v)", err)
	}
}
