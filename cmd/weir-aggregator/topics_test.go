package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/embedded"
)

func TestMain(m *testing.M) {
	// The library of Kafka keeps one goroutine of meters for ever.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

type outcome struct {
	code     int
	out, err string
}

func aggregatorCLI(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Execute(context.WithoutCancel(t.Context()), root(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return outcome{code, out.String(), errs.String()}
}

func TestTopicsAreMadeCheckedAndMadeOnce(t *testing.T) {
	k, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	topics := func(args ...string) outcome {
		return aggregatorCLI(t, append(append([]string{"topics"}, args...), "--kafka-brokers", k.Addr(), "--topics-partitions", "4")...)
	}
	if o := topics("check"); o.code != 1 || !strings.Contains(o.out, "weir.usage: does not exist") || !strings.Contains(o.err, "topics ensure") {
		t.Errorf("check before: %+v", o)
	}
	if o := topics("ensure", "--dry-run"); o.code != 0 || strings.Count(o.out, "does not exist") != 4 {
		t.Errorf("dry run: %+v", o)
	}
	if o := topics("check"); o.code != 1 {
		t.Errorf("the dry run changed something: %+v", o)
	}
	if o := topics("ensure"); o.code != 0 || strings.Count(o.out, "created") != 4 {
		t.Errorf("ensure: %+v", o)
	}
	for _, again := range []string{"ensure", "check"} {
		if o := topics(again); o.code != 0 || o.out != "all topics are as they should be\n" {
			t.Errorf("%s again: %+v", again, o)
		}
	}
	o := aggregatorCLI(t, "topics", "ensure", "--kafka-brokers", k.Addr(), "--topics-partitions", "8")
	if o.code != 1 || !strings.Contains(o.out, "partitions is 4, want 8") {
		t.Errorf("another number of partitions: %+v", o)
	}
}

func TestTopicsPrintsTheRightsItWouldGive(t *testing.T) {
	k, err := embedded.StartKafka("")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	o := aggregatorCLI(t, "topics", "ensure", "--dry-run", "--acls", "--acl-sidecar", "User:s", "--acl-controller", "", "--kafka-brokers", k.Addr())
	if o.code != 0 || !strings.Contains(o.out, "User:s may write topic weir.usage\n") ||
		!strings.Contains(o.out, "User:weir-check may describe the settings of topic weir.usage\n") ||
		strings.Contains(o.out, "User:s may write topic weir.decisions") || strings.Contains(o.out, "controller") {
		t.Errorf("acls: %+v", o)
	}
}

func TestTopicsWrongUse(t *testing.T) {
	if o := aggregatorCLI(t, "topics"); o.code != 2 {
		t.Errorf("topics alone: %+v", o)
	}
	if o := aggregatorCLI(t, "topics", "check"); o.code != 1 || !strings.Contains(o.err, "brokers") {
		t.Errorf("no brokers: %+v", o)
	}
	if o := aggregatorCLI(t, "topics", "check", "--kafka-brokers", "127.0.0.1:1", "--timeout", "300ms"); o.code != 1 || !strings.Contains(o.err, "127.0.0.1:1") {
		t.Errorf("no broker there: %+v", o)
	}
}
