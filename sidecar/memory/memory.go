package memory

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/ledger"
)

const (
	// gcPercent: what lives is small and most of it for good, so that headroom is what costs.
	gcPercent = 25
	// profileRate is the bytes between two samples of the heap's profile: each stack sampled costs a page.
	profileRate = 4 << 20

	// program is what the process needs with no counter, bytes, its hot pages included; counter what each takes, with
	// an identity as long as the ledger grants on average.
	program = 16 << 20
	counter = 1400
	// outside of the runtime's own accounts: cells, and the hot pages of the program's file.
	cell     = quota.CellWords * 8
	hotPages = 4 << 20

	leastCounters = 1024
	leastHeap     = 8 << 20

	firstTrim  = 3 * time.Second // after the start; each later one after twice as long
	trimPeriod = time.Minute     // at most
)

// Fit is what was chosen.
type Fit struct {
	// Limit of the process, bytes; 0: none.
	Limit int64
	// Counters that may have a slot of their own.
	Counters int
	// GCPercent and HeapLimit (bytes) are the collector's; 0: the environment's.
	GCPercent int
	HeapLimit int64
}

// Set reads the limit and makes the runtime's settings. wanted is the most counters that the configuration allows (0: the
// ledger's default); fewer are chosen where the limit has no room for them. Call it once, before anything is built.
func Set(wanted int) Fit {
	f := Choose(Limit(os.DirFS("/")), wanted)
	f.apply(os.Getenv)
	return f
}

// Choose is what Set would choose under a limit, in bytes; 0: under none. It sets nothing.
func Choose(limit int64, wanted int) Fit {
	if wanted <= 0 {
		wanted = ledger.DefaultSlots
	}
	f := Fit{Limit: limit, Counters: wanted, GCPercent: gcPercent}
	if limit <= 0 {
		return f
	}
	room := max((limit-program)/counter, leastCounters)
	f.Counters = int(min(int64(wanted), room))
	f.HeapLimit = max(limit-limit/20-hotPages-int64(f.Counters)*cell, leastHeap)
	return f
}

// apply makes the settings that the environment does not make.
func (f *Fit) apply(env func(string) string) {
	if env("GOGC") != "" {
		f.GCPercent = 0
	} else {
		debug.SetGCPercent(f.GCPercent)
	}
	switch {
	case env("GOMEMLIMIT") != "":
		f.HeapLimit = 0
	case f.HeapLimit > 0:
		debug.SetMemoryLimit(f.HeapLimit)
	}
	if !strings.Contains(env("GODEBUG"), "memprofilerate") {
		runtime.MemProfileRate = profileRate
	}
}

// Fields say what was chosen, for a log line.
func (f Fit) Fields() []zap.Field {
	fields := []zap.Field{zap.Int("counters", f.Counters)}
	if f.Limit > 0 {
		fields = append(fields, zap.Int64("limit_bytes", f.Limit))
	}
	if f.GCPercent > 0 {
		fields = append(fields, zap.Int("gc_percent", f.GCPercent))
	}
	if l := debug.SetMemoryLimit(-1); l < math.MaxInt64 {
		fields = append(fields, zap.Int64("heap_limit_bytes", l))
	}
	return fields
}

// Run lets go of what the start needed, and then now and then of what has not been needed since, until ctx ends.
func (f Fit) Run(ctx context.Context) error {
	var pages trimmer
	wait := firstTrim
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if wait == firstTrim {
			debug.FreeOSMemory()
		}
		pages.trim()
		wait = min(2*wait, trimPeriod)
		timer.Reset(wait)
	}
}
