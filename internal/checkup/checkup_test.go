package checkup

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

func one(f ...Finding) Check { return Func(func(context.Context) []Finding { return f }) }

func report(checks ...Named) *Report { return Run(context.Background(), checks, time.Minute) }

var mixed = report(
	Named{"kafka.reachable", one(Okay("1 broker answers"))},
	Named{"kafka.topics", one(
		Fail("weir-aggregator topics ensure, with the aggregators' configuration", "topic weir.usage: retention.ms is 60000, want 600000"),
		Warn("give every installation topics of its own: kafka.topics", "topic weir.status: another program writes to it, and what it writes is no status of a sidecar"),
	)},
	Named{"redis", one(Skip("name it: --redis-addresses", "no Redis is named"))},
)

func TestLinesFitTheTerminal(t *testing.T) {
	for name, width := range map[string]int{"table_80.txt": 80, "table_120.txt": 120, "table_pipe.txt": 0} {
		lines := mixed.Lines(width)
		for _, l := range lines {
			if width > 0 && utf8.RuneCountInString(l) > width {
				t.Errorf("%s: %d columns: %q", name, utf8.RuneCountInString(l), l)
			}
		}
		golden(t, name, strings.Join(lines, "\n")+"\n")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // for all to read
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is printed:\n%s", path, got)
	}
}

func TestResultIsTheWorstLevel(t *testing.T) {
	for name, tt := range map[string]struct {
		findings        []Finding
		result          Level
		err, strictErrs bool
	}{
		"nothing":       {nil, OK, false, false},
		"in order":      {[]Finding{Okay("a"), Okay("b")}, OK, false, false},
		"skipped is no": {[]Finding{Okay("a"), Skip("", "b")}, OK, false, false},
		"may not look":  {[]Finding{Okay("a"), Deny("", "b")}, OK, false, true},
		"warning":       {[]Finding{Warn("", "a"), Skip("", "b")}, Warning, false, true},
		"failed":        {[]Finding{Fail("", "a"), Warn("", "b"), Okay("c")}, Failed, true, true},
	} {
		r := report(Named{"x", one(tt.findings...)})
		if r.Result != tt.result || (r.Err(false) != nil) != tt.err || (r.Err(true) != nil) != tt.strictErrs {
			t.Errorf("%s: %s, %v, strictly %v", name, r.Result, r.Err(false), r.Err(true))
		}
	}
}

func TestChecksRunInOrderEachWithItsOwnTime(t *testing.T) {
	slow := Func(func(ctx context.Context) []Finding {
		<-ctx.Done()
		return []Finding{Fail("", "gave up: %v", ctx.Err())}
	})
	r := Run(t.Context(), []Named{{"slow", slow}, {"next", one(Okay("still looked at"))}}, time.Millisecond)
	if len(r.Findings) != 2 || r.Findings[0].Check != "slow" || r.Findings[0].Level != Failed || r.Findings[1].Level != OK {
		t.Errorf("%+v", r.Findings)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Run(ended, []Named{{"never", one(Okay("x"))}}, time.Minute); r.Findings[0].Level != Skipped {
		t.Errorf("after an interrupt: %+v", r.Findings)
	}
}

// A right that lacks is told from what is not there, in the last line and by --strict.
func TestWhatMayNotBeReadIsCounted(t *testing.T) {
	r := report(Named{"x", one(Okay("a"), Skip("", "not installed"), Deny("grant it", "may not"))})
	lines := r.Lines(0)
	if last := lines[len(lines)-1]; last != "1 ok, 2 skipped (1 for lack of rights)" {
		t.Errorf("%q", last)
	}
	if err := r.Err(true); err == nil || !strings.Contains(err.Error(), "1 not looked at for lack of rights") {
		t.Errorf("strictly: %v", err)
	}
}

// What sidecars and policies say is printed on a terminal: it must not move the cursor.
func TestWhatOthersWroteIsOneLineOfText(t *testing.T) {
	r := report(Named{"x", one(Warn("a\nb", "red \x1b[31m\r\nline %s", strings.Repeat("ö", 400)))})
	f := r.Findings[0]
	if strings.ContainsAny(f.Text+f.Fix, "\x1b\r\n") || len(f.Text) > maxText+len("…") || !utf8.ValidString(f.Text) {
		t.Errorf("%q, %q", f.Text, f.Fix)
	}
}

func TestNamesAreFewAndSorted(t *testing.T) {
	if got := Names([]string{"c", "b", "a"}); got != "a, b, c" {
		t.Error(got)
	}
	if got := Names(strings.Split("g f e d c b a", " ")); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}
