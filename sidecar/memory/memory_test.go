package memory

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weirproxy/weir/sidecar/ledger"
)

const mib = 1 << 20

func TestTheSmallestLimitOfTheGroupsAboveHolds(t *testing.T) {
	files := func(pairs ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1] + "\n")}
		}
		return m
	}
	const self, v2, v1 = "proc/self/cgroup", "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	for name, tt := range map[string]struct {
		fs   fstest.MapFS
		want int64
	}{
		"nothing to be seen":       {files(), 0},
		"v2, a container's root":   {files(self, "0::/", v2+"memory.max", "33554432"), 32 * mib},
		"v2, no limit":             {files(self, "0::/", v2+"memory.max", "max"), 0},
		"v2, above is smaller":     {files(self, "0::/a/b", v2+"a/b/memory.max", "67108864", v2+"a/memory.max", "33554432"), 32 * mib},
		"v2, above has none":       {files(self, "0::/a/b", v2+"a/b/memory.max", "67108864", v2+"a/memory.max", "max"), 64 * mib},
		"v2, the path is the host": {files(self, "0::/kubepods/pod1/c", v2+"memory.max", "33554432"), 32 * mib},
		"v2, above the root":       {files(self, "0::/../..", v2+"memory.max", "33554432"), 32 * mib},
		"v1":                       {files(self, "5:cpu,cpuacct:/x\n4:memory:/a\n0::/", v1+"a/memory.limit_in_bytes", "33554432"), 32 * mib},
		"v1, no limit":             {files(self, "4:memory:/a", v1+"a/memory.limit_in_bytes", "9223372036854771712"), 0},
		"v1, the path is the host": {files(self, "4:memory:/docker/c", v1+"memory.limit_in_bytes", "33554432"), 32 * mib},
		"v1 and v2": {files(self, "4:hugetlb,memory:/a\n0::/b", v1+"a/memory.limit_in_bytes", "67108864",
			v2+"b/memory.max", "33554432"), 32 * mib},
		"not a number":    {files(self, "0::/", v2+"memory.max", "lots"), 0},
		"lines of noise":  {files(self, "memory\n\n0:", v2+"memory.max", "33554432"), 0},
		"other hierarchy": {files(self, "5:cpu:/", v1+"memory.limit_in_bytes", "33554432"), 0},
	} {
		if got := Limit(tt.fs); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestWhatIsChosenFitsTheLimit(t *testing.T) {
	if f := Choose(0, 50_000); f.Counters != 50_000 || f.HeapLimit != 0 || f.GCPercent <= 0 {
		t.Errorf("without a limit: %+v", f)
	}
	if f := Choose(0, 0); f.Counters != ledger.DefaultSlots {
		t.Errorf("without a setting: %+v", f)
	}
	if f := Choose(32*mib, 50_000); f.Counters*7/8 < 10_000 { // idle ones go where more than that are in use
		t.Errorf("32 MiB have no room for 10,000 counters: %+v", f)
	}
	if f := Choose(32*mib, 500); f.Counters != 500 {
		t.Errorf("a smaller setting is not kept: %+v", f)
	}
	if f := Choose(4096*mib, 50_000); f.Counters != 50_000 {
		t.Errorf("with room enough: %+v", f)
	}
	for _, limit := range []int64{1, mib, 16 * mib, 24 * mib, 32 * mib, 64 * mib, 1 << 40, math.MaxInt64} {
		f := Choose(limit, 50_000)
		if f.Counters < leastCounters || f.HeapLimit < leastHeap {
			t.Errorf("%d bytes: %+v leaves nothing to work with", limit, f)
		}
		if all := f.HeapLimit + int64(f.Counters)*cell; limit >= 32*mib && all > limit {
			t.Errorf("%d bytes: %+v may come to %d", limit, f, all)
		}
	}
}

func TestTheEnvironmentsSettingsStay(t *testing.T) {
	percent, limit, rate := debug.SetGCPercent(77), debug.SetMemoryLimit(77*mib), runtime.MemProfileRate
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		runtime.MemProfileRate = rate
	}()
	set := map[string]string{"GOGC": "77", "GOMEMLIMIT": "77MiB", "GODEBUG": "x=1,memprofilerate=1"}
	f := Choose(32*mib, 100)
	f.apply(func(name string) string { return set[name] })
	if p, l := debug.SetGCPercent(77), debug.SetMemoryLimit(-1); p != 77 || l != 77*mib || runtime.MemProfileRate != rate {
		t.Errorf("GOGC %d, GOMEMLIMIT %d, memprofilerate %d", p, l, runtime.MemProfileRate)
	}
	if f.GCPercent != 0 || f.HeapLimit != 0 {
		t.Errorf("it is said that they were set: %+v", f)
	}
	f = Choose(32*mib, 100)
	f.apply(func(string) string { return "" })
	if p, l := debug.SetGCPercent(77), debug.SetMemoryLimit(-1); p != gcPercent || l != f.HeapLimit || runtime.MemProfileRate != profileRate {
		t.Errorf("GOGC %d, GOMEMLIMIT %d, memprofilerate %d", p, l, runtime.MemProfileRate)
	}
	if len(f.Fields()) != 4 {
		t.Errorf("the log line has %v", f.Fields())
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Fit{}.Run(ctx) }()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}

// It finds this very machine's limit, or that there is none, without failing.
func TestThisMachinesLimit(t *testing.T) {
	if l := Limit(os.DirFS("/")); l < 0 {
		t.Errorf("%d", l)
	}
}
