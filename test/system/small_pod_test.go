package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/sidecar/memory"
	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

const (
	smallMemory = 32 << 20
	// smallCPU is 0.1 CPU as Kubernetes asks the kernel for it, µs of each period.
	smallCPU, cpuPeriod = 10_000, 100_000
)

// A pod of 0.1 CPU and 32 MiB: it becomes ready, holds limits, and stays within its memory while more clients ask than
// it has room for. All that is resident counts, also the pages of the program's file that a kernel would take back.
func TestASmallPodIsASupportedSize(t *testing.T) {
	w := world.Settled(t, 1, 1, world.Policy(world.EachClient(100, "")))
	p := w.Pods[0]
	fit := memory.Choose(smallMemory, 0)
	restartSmall(t, w, p, fit)

	const perSecond = 400
	length := time.Duration(fit.Counters+1000)*time.Second/perSecond + 5*time.Second
	known := func(client string, perSecond float64) load.Source {
		return load.Source{
			Name: client, Rate: load.Constant(perSecond),
			Request: load.Request{Path: "/", Header: map[string]string{"x-api-key": client}},
		}
	}
	flood := load.Source{
		Name: "flood",
		Rate: load.Steps(load.Step{For: 3 * time.Second}, load.Step{For: length, PerSecond: perSecond}),
		Make: func(k int) *load.Request {
			return &load.Request{Path: "/", Header: map[string]string{"x-api-key": "flood-" + strconv.Itoa(k)}}
		},
	}
	run, err := load.Start(load.Config{
		Pods:    []load.Pod{{Name: "orders-0", Target: load.GRPC("unix://"+p.Socket, 2)}},
		Sources: []load.Source{known("modest", 20), known("greedy", 200), flood}, For: length, Outstanding: 2048,
	})
	w.Must(err)
	res := run.Wait()

	if modest := res.Of("modest"); modest.Errors > 0 || modest.Denied > 0 {
		t.Errorf("a client at a fifth of its limit was refused %d times, %d errors", modest.Denied, modest.Errors)
	}
	greedy := res.Of("greedy")
	mean := float64(greedy.Admitted) / length.Seconds() / 100
	if mean < 0.8 || mean > 1.1 || greedy.Errors > 0 {
		t.Errorf("the client at twice its limit got %.3f of it, %d errors", mean, greedy.Errors)
	}
	counters := int(w.Metric(p.Admin, "weir_sidecar_slots"))
	peak := peakResident(t, p.Sidecar.PID())
	t.Logf("%d counters of at most %d; at most %.1f MiB resident; greedy %.3f", counters, fit.Counters, float64(peak)/(1<<20), mean)
	if counters < 10_000 || counters > fit.Counters+1024 {
		t.Errorf("%d counters, want 10,000 or more and no more than %d", counters, fit.Counters)
	}
	if peak > smallMemory {
		t.Errorf("%d bytes were resident", peak)
	}
}

// restartSmall starts a pod's sidecar anew with a small pod's processor and, since a control group for memory may not be
// made everywhere, the settings that it would choose by one.
func restartSmall(t *testing.T, w *world.World, p *world.Pod, fit memory.Fit) {
	t.Helper()
	w.Must(p.Sidecar.Stop())
	cmd := parts.Command(t, "weir-sidecar", append(p.Args, "--max-counters", strconv.Itoa(fit.Counters))...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%d", fit.HeapLimit))
	group := cpuGroup(t)
	p.Sidecar = parts.Start(t, "weir-sidecar", cmd)
	if group != "" {
		w.Must(os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(p.Sidecar.PID())), 0))
	}
	w.PodReady(p)
}

// cpuGroup makes a control group (version 1) of smallCPU that lasts as long as the test. It is "" where this process may
// not make one, or is in a group that somebody else made: GOMAXPROCS must do then.
func cpuGroup(t *testing.T) string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || !strings.Contains(string(own), ":cpu:/\n") && !strings.Contains(string(own), ":cpu,cpuacct:/\n") {
		return ""
	}
	dir := fmt.Sprintf("/sys/fs/cgroup/cpu/weir-test-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Logf("0.1 CPU is one CPU here: %v", err)
		return ""
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("the control group stays: %v", err)
		}
	})
	for name, value := range map[string]int{"cpu.cfs_period_us": cpuPeriod, "cpu.cfs_quota_us": smallCPU} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(value)), 0); err != nil {
			t.Logf("0.1 CPU is one CPU here: %v", err)
			return ""
		}
	}
	return dir
}

// peakResident is the most that was resident of a process, bytes.
func peakResident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
