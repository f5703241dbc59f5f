package wire

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is how long the process has been computing: on a shared machine, what a benchmark costs rather than takes.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
