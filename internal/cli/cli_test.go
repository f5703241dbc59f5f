package cli

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/admin"
)

type outcome struct {
	code     int
	out, err string
}

func execute(t *testing.T, root *cobra.Command, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := Execute(context.WithoutCancel(t.Context()), root, args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return outcome{code, out.String(), errs.String()}
}

func TestExitCodes(t *testing.T) {
	root := func() *cobra.Command {
		r := Root("prog", "short", "long")
		add := func(use string, run func() error) {
			r.AddCommand(&cobra.Command{Use: use, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return run() }})
		}
		add("ok", func() error { return nil })
		add("fails", func() error { return errors.New("broken; mend it") })
		add("silent", func() error { return ErrSilent })
		add("misused", func() error { return Usage(errors.New("give --x")) })
		r.AddCommand(Version("prog"))
		return r
	}
	for args, want := range map[string]outcome{
		"ok":        {0, "", ""},
		"fails":     {1, "", "prog fails: broken; mend it\n"},
		"silent":    {1, "", ""},
		"misused":   {2, "", "prog misused: give --x\nSee prog misused --help.\n"},
		"ok extra":  {2, "", "prog ok: unknown command \"extra\" for \"prog ok\"\nSee prog ok --help.\n"},
		"ok --what": {2, "", "prog ok: unknown flag: --what\nSee prog ok --help.\n"},
		"fail --x":  {2, "", "prog: unknown command \"fail\"; did you mean fails?\nSee prog --help.\n"},
		"other":     {2, "", "prog: unknown command \"other\"; known: fails, misused, ok, silent, version\nSee prog --help.\n"},
		"":          {2, "", "prog: name a command: fails, misused, ok, silent, version\nSee prog --help.\n"},
	} {
		if got := execute(t, root(), strings.Fields(args)...); got != want {
			t.Errorf("%q: %+v, want %+v", args, got, want)
		}
	}
	if o := execute(t, root(), "version"); o.code != 0 || !strings.HasPrefix(o.out, "prog ") {
		t.Errorf("version: %+v", o)
	}
}

// probe is a program of which only the admin address is configured.
func probe() *cobra.Command {
	r := Root("prog", "", "")
	r.AddCommand(Healthcheck("prog", config.DefaultSidecar(), func(c config.Sidecar) config.Admin { return c.Admin }))
	return r
}

func TestHealthcheckFindsTheProgramByItsConfiguration(t *testing.T) {
	s := admin.New(admin.Config{}, zap.NewNop())
	ready := false
	s.Ready("policies", func() (bool, []string) { return ready, []string{"the policy topic is not read yet"} })
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("admin: {address: 'tcp://"+server.Listener.Addr().String()+"'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := execute(t, probe(), "healthcheck", "--config", file); o.code != 1 || !strings.Contains(o.err, "the policy topic is not read yet") {
		t.Errorf("not ready: %+v", o)
	}
	if o := execute(t, probe(), "healthcheck", "--live", "-c", file); o.code != 0 || o.out != "ok\n" {
		t.Errorf("alive: %+v", o)
	}
	ready = true
	if o := execute(t, probe(), "healthcheck", "--admin-address", "tcp://"+server.Listener.Addr().String()); o.code != 0 {
		t.Errorf("ready: %+v", o)
	}
	for args, want := range map[string]string{
		"--admin-address=":                "admin.address is empty",
		"--admin-address=tcp://[::1]:1":   "is the program running",
		"--config=no-such.yaml":           "no-such.yaml",
		"--admin-address=unix://@nowhere": "abstract",
	} {
		if o := execute(t, probe(), "healthcheck", args); o.code != 1 || !strings.Contains(o.err, want) {
			t.Errorf("%s: %+v, want %q", args, o, want)
		}
	}
}

func TestFlagsHelpIsTheSettingsDocumentation(t *testing.T) {
	o := execute(t, probe(), "healthcheck", "--help")
	for _, want := range []string{"--kafka-tls-ca-file", "a PEM file of the authorities that sign servers' certificates", `(default "unix:///run/weir/check.sock")`} {
		if !strings.Contains(o.out, want) {
			t.Errorf("%q is missing in the help:\n%s", want, o.out)
		}
	}
}

func TestAdminAddresses(t *testing.T) {
	for _, good := range []config.Admin{{}, {Address: "tcp://127.0.0.1:1"}, {Address: "unix:///a", MetricsAddress: "tcp://0.0.0.0:2"}} {
		if err := Admin(good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []config.Admin{{Address: "here"}, {MetricsAddress: ":9"}, {Address: "unix:///a", MetricsAddress: "unix:///a"}} {
		if err := Admin(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestTheWholeOfKafkasSettingsReachesTheBus(t *testing.T) {
	k := config.Kafka{
		Brokers: []string{"a:1"}, ClientID: "", RackID: "r", Acks: "leader",
		TLS:    config.TLS{Enabled: true, CAFile: "ca", CertFile: "c", KeyFile: "k", ServerName: "n"},
		SASL:   config.SASL{Mechanism: "PLAIN", Username: "u", PasswordFile: "p"},
		Topics: config.TopicNames{Usage: "u", Decisions: "d", Policies: "p", Status: "s"},
	}
	b := Bus(k, "prog")
	if b.Brokers[0] != "a:1" || b.ClientID != "prog" || b.RackID != "r" || b.Acks != "leader" ||
		b.TLS.CAFile != "ca" || !b.TLS.Enabled || b.SASL.PasswordFile != "p" {
		t.Errorf("bus: %+v", b)
	}
	topics := Topics(k.Topics, config.TopicSettings{Partitions: 3, Replication: 2, MinInSync: 1})
	if topics.Usage != "u" || topics.Decisions != "d" || topics.Policies != "p" || topics.Status != "s" ||
		topics.Partitions != 3 || topics.Replication != 2 || topics.MinInSync != 1 {
		t.Errorf("topics: %+v", topics)
	}
}
