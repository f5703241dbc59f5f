// Package parts starts and stops the real servers that weir runs between: an
// Envoy, a Kafka broker, a Redis, and weir's own programs. Tests of the whole
// system and benchmark commands use it; no program links it.
//
//	kafka := parts.StartKafka(t, parts.KafkaOpts{})
//	redis := parts.StartRedis(t, parts.RedisOpts{})
//	up := parts.StartUpstream(t)
//	agg := parts.Program(t, "weir-aggregator", "--config", file)
//	envoy := parts.StartEnvoy(t, parts.EnvoyOpts{
//		Upstream: up.Addr(),
//		Authz:    &parts.Authz{Address: "unix://" + socket, Timeout: 50 * time.Millisecond},
//	})
//
// Everything listens on loopback, keeps its files under the test's temporary
// directory, and is a process of which the id is known. A process is ended by
// that id when the test ends, and by the kernel when the test's own process
// dies. A part that is not installed fails the test and names the make target
// that installs it: nothing is skipped.
//
// A command uses the same functions under [Run]. Functions that take a [T], and
// methods that say so, must be called on the test's own goroutine, as Fatalf
// must; all others are safe for concurrent use.
package parts
