package parts

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// KafkaOpts configures a broker. The zero value is one good for tests.
type KafkaOpts struct {
	// Heap is the most memory of the Java heap, "512m" by default.
	Heap string
	// Properties are added to server.properties and win over what is there.
	Properties map[string]string
	// Via is the host:port of a proxy, for which the broker has a second
	// listener: clients that come by it are told to keep to the proxy, since
	// Kafka itself says where its brokers are. See Behind.
	Via string
}

// Kafka is a real broker, its own controller (KRaft), that creates no topic
// unasked. Its topics and records outlive Stop, Kill and Restart.
type Kafka struct{ *Server }

// Behind returns the host:port that the proxy of KafkaOpts.Via leads to.
func (k *Kafka) Behind() string { return loopback(k.ports[2]) }

// StartKafka starts a broker and returns when it serves clients. The very first
// start on a machine takes some seconds more: see kafkaWarm.
func StartKafka(t T, opts KafkaOpts) *Kafka {
	t.Helper()
	libs := kafkaLibs(t)
	warm := kafkaWarmed(t, libs)
	return &Kafka{startServer(t, kafkaPlan(t.TempDir(), opts, func(dir, props string) (*exec.Cmd, error) {
		if err := warm.format(dir); err != nil {
			return nil, err
		}
		return kafkaJava(libs, opts, warm.javaFlags(), "kafka.Kafka", props), nil
	}))}
}

// kafkaLibs returns the class path of the installed Kafka.
func kafkaLibs(t T) string {
	t.Helper()
	onPath(t, "kafka (it needs Java)", "java")
	return tool(t, "kafka", "kafka", "libs")
}

// kafkaPlan is the plan of a broker with its data under dir. command is called
// with the data directory and the properties file, which is written before.
func kafkaPlan(dir string, opts KafkaOpts, command func(data, props string) (*exec.Cmd, error)) plan {
	return plan{
		name:  "kafka",
		ports: 3,
		command: func(ports []int) (*exec.Cmd, error) {
			// New ports are a new broker: the old one never served.
			home := filepath.Join(dir, fmt.Sprint(ports[0]))
			data, props := filepath.Join(home, "data"), filepath.Join(home, "server.properties")
			if err := os.MkdirAll(data, 0o755); err != nil {
				return nil, err
			}
			text := kafkaProperties(ports, data, opts)
			if err := os.WriteFile(props, []byte(text), 0o644); err != nil {
				return nil, err
			}
			return command(data, props)
		},
		ready: func(ports []int) error { return kafkaAnswers(loopback(ports[0])) },
	}
}

// kafkaProperties renders server.properties; ports are of clients, of the
// controller, and of clients that come through a proxy.
func kafkaProperties(ports []int, data string, opts KafkaOpts) string {
	client, controller := loopback(ports[0]), loopback(ports[1])
	props := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@" + controller,
		"listeners":                      "CLIENT://" + client + ",CONTROLLER://" + controller,
		"advertised.listeners":           "CLIENT://" + client,
		"inter.broker.listener.name":     "CLIENT",
		"controller.listener.names":      "CONTROLLER",
		"listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       data,
		"auto.create.topics.enable":      "false",
		// One broker, and few partitions for its own topics: the first group
		// would otherwise wait for 50 of them to be made.
		"offsets.topic.num.partitions":             "4",
		"offsets.topic.replication.factor":         "1",
		"transaction.state.log.num.partitions":     "4",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",
		"group.initial.rebalance.delay.ms":         "0",
		// A broker that was killed may not register again before its last
		// session is over: 9 s by default.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		// 128 MiB of the heap by default.
		"log.cleaner.dedupe.buffer.size": "8388608",
	}
	if opts.Via != "" {
		props["listeners"] += ",PROXIED://" + loopback(ports[2])
		props["advertised.listeners"] += ",PROXIED://" + opts.Via
		props["listener.security.protocol.map"] += ",PROXIED:PLAINTEXT"
	}
	maps.Copy(props, opts.Properties)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&b, "%s=%s\n", key, props[key])
	}
	return b.String()
}

func kafkaJava(libs string, opts KafkaOpts, flags []string, class string, args ...string) *exec.Cmd {
	heap := opts.Heap
	if heap == "" {
		heap = "512m"
	}
	all := append([]string{"-Xmx" + heap, "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}, flags...)
	all = append(all, "-cp", filepath.Join(libs, "*"), class)
	return exec.Command("java", append(all, args...)...)
}

// kafkaAnswers asks for the cluster's metadata. A broker names itself there
// once it is registered and may lead partitions.
func kafkaAnswers(addr string) error {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.ClientID = "weir-test-parts"
	config.Net.DialTimeout, config.Net.ReadTimeout, config.Net.WriteTimeout = time.Second, 5*time.Second, 5*time.Second
	broker := sarama.NewBroker(addr)
	if err := broker.Open(config); err != nil {
		return err
	}
	defer broker.Close()
	if _, err := broker.Connected(); err != nil {
		return err
	}
	metadata, err := broker.GetMetadata(sarama.NewMetadataRequest(config.Version, nil))
	if err != nil {
		return err
	}
	if len(metadata.Brokers) == 0 {
		return errors.New("the broker is not registered yet")
	}
	return nil
}
