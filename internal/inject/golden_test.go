package inject

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func settings() Settings {
	s := DefaultSettings()
	s.Image = "registry.example/weir-sidecar@sha256:1111"
	s.Kafka.Brokers = []string{"kafka-0.example:9093", "kafka-1.example:9093"}
	return s
}

func engine(t *testing.T, change func(*Settings)) *Engine {
	t.Helper()
	s := settings()
	if change != nil {
		change(&s)
	}
	e, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// cases are the streams in testdata: in.yaml (or .json), and out, report beside it.
func cases() map[string]struct {
	change  func(*Settings)
	options Options
} {
	type c = struct {
		change  func(*Settings)
		options Options
	}
	return map[string]c{
		"deployment": {change: func(s *Settings) {
			s.KafkaSecret = "weir-kafka-client"
			s.Kafka.TLS.Enabled, s.Kafka.TLS.CAFile = true, "ca.crt"
			s.Kafka.SASL.Mechanism, s.Kafka.SASL.Username, s.Kafka.SASL.PasswordFile = "SCRAM-SHA-512", "weir-sidecar", "password"
		}},
		"istio":       {},
		"plain":       {change: func(s *Settings) { s.Mode = Plain }},
		"kinds":       {},
		"annotations": {change: func(s *Settings) { s.ForeignTargets = []string{"edge"} }},
		"disabled":    {},
		"opt-in":      {options: Options{OptIn: true}},
		"own-names":   {},
		"list":        {},
		"json":        {},
	}
}

func inputOf(t *testing.T, name string) (in []byte, ext string) {
	t.Helper()
	for _, ext := range []string{".yaml", ".json"} {
		if data, err := os.ReadFile(filepath.Join("testdata", name, "in"+ext)); err == nil {
			return data, ext
		}
	}
	t.Fatalf("%s has no input", name)
	return nil, ""
}

func golden(t *testing.T, got []byte, path ...string) {
	t.Helper()
	file := filepath.Join(append([]string{"testdata"}, path...)...)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs; look at it with -update and git diff. Got:\n%s", file, got)
	}
}

func TestStreamsAreInjectedAsInTheGoldenFiles(t *testing.T) {
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			in, ext := inputOf(t, name)
			out, report, err := engine(t, c.change).Stream(in, c.options)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, out, name, "out"+ext)
			golden(t, []byte(report.String()), name, "report.txt")
		})
	}
}

func TestASecondInjectionChangesNotAByte(t *testing.T) {
	for name, c := range cases() {
		in, _ := inputOf(t, name)
		e := engine(t, c.change)
		once, _, err := e.Stream(in, c.options)
		if err != nil {
			t.Fatal(err)
		}
		twice, report, err := e.Stream(once, c.options)
		if err != nil || string(twice) != string(once) {
			t.Errorf("%s: a second injection changed it (%v):\n%s", name, err, twice)
		}
		for _, entry := range report {
			if entry.Action.Changed() {
				t.Errorf("%s: the report says %s at the second time", name, entry.Action)
			}
		}
	}
}

// What the injector replaced of the pod's own, it cannot give back.
func TestUninjectGivesBackWhatWasInjected(t *testing.T) {
	for name, c := range cases() {
		if name == "own-names" {
			continue
		}
		in, _ := inputOf(t, name)
		out, _, err := engine(t, c.change).Stream(in, c.options)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := UninjectStream(out)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := documents(t, back), documents(t, in); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: after uninject:\n%v\nwant\n%v", name, got, want)
		}
	}
}

func documents(t *testing.T, in []byte) (out []object) {
	t.Helper()
	for _, c := range split(in) {
		if c.blank() {
			continue
		}
		o, ok, err := c.decode(true)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			out = append(out, o)
		}
	}
	return out
}

func TestUninjectPassesOtherThingsByteForByte(t *testing.T) {
	for name := range cases() {
		in, _ := inputOf(t, name)
		out, report, err := UninjectStream(in)
		if err != nil || string(out) != string(in) {
			t.Errorf("%s: uninject changed what was never injected (%v)", name, err)
		}
		if len(report) == 0 {
			t.Errorf("%s: the report is empty", name)
		}
	}
}
