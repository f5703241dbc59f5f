package policies

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/bus"
)

type sends []string

func (s *sends) Send(_ string, _ int32, key, _ []byte, _ func(bus.Ack)) error {
	*s = append(*s, string(key))
	return errors.New("not taken")
}

// The owner of usage partition 0 alone publishes files: others look at nothing and say nothing.
func TestOnlyTheOwnerOfPartition0Publishes(t *testing.T) {
	for _, owner := range []bool{false, true} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(document("a", "5")), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		w := NewWatcher(WatcherConfig{Log: zap.NewNop()})
		close(w.ready)
		var sent sends
		asked := 0
		d := &Directory{Dir: dir, Topic: "weir.policies", Keys: keys(t), Watcher: w, Writer: &sent, Log: zap.NewNop(), Owner0: func() bool {
			if asked++; asked == 2 {
				stop()
			}
			return owner
		}}
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if (len(sent) > 0) != owner || (d.Problem() != "") != owner {
			t.Errorf("owner of partition 0 %v: sent %v, problem %q", owner, sent, d.Problem())
		}
	}
}
