package parts

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperEnv makes the test binary itself the program that tests start: its
// value says what that program does.
const helperEnv = "WEIR_PARTS_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "fail":
		fmt.Println("about to fail")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ignoring SIGTERM")
		time.Sleep(time.Hour)
	case "parent":
		helperParent()
	default:
		fmt.Println("waiting")
		time.Sleep(time.Hour)
	}
}

// helperParent starts a process as tests do, names it, and dies without any
// cleanup.
func helperParent() {
	child, err := start("child", helper("wait"))
	if err != nil {
		panic(err)
	}
	fmt.Println(child.PID())
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func helper(does string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+does)
	return cmd
}

// startHelper starts a helper and waits for its first line.
func startHelper(t *testing.T, does string) *Process {
	t.Helper()
	p := Start(t, does, helper(does))
	Eventually(t, time.Minute, "first line", func() error {
		if p.Output() == "" {
			return errors.New("no output yet")
		}
		return nil
	})
	return p
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestProcessEndsWithItsTest(t *testing.T) {
	var p *Process
	t.Run("one", func(t *testing.T) {
		p = startHelper(t, "wait")
		if !alive(p.PID()) || p.ExitCode() != -1 || p.RSS() <= 0 {
			t.Errorf("alive %v, exit code %d, RSS %d", alive(p.PID()), p.ExitCode(), p.RSS())
		}
	})
	if alive(p.PID()) {
		t.Errorf("process %d outlived its test", p.PID())
	}
}

func TestProcessStopsOnSIGTERM(t *testing.T) {
	p := startHelper(t, "wait")
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stop a frozen process: %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stop it again: %v", err)
	}
}

func TestStubbornProcessIsKilledAndThatIsAnError(t *testing.T) {
	p := startHelper(t, "stubborn")
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Wait returned %v", err)
	}
	if alive(p.PID()) {
		t.Errorf("process %d is still there", p.PID())
	}
}

func TestFailureSaysWhatTheProcessWrote(t *testing.T) {
	p := Start(t, "fail", helper("fail"))
	err := p.Wait(time.Minute)
	if err == nil || !strings.Contains(err.Error(), "about to fail") {
		t.Errorf("Wait returned %v", err)
	}
	if p.ExitCode() != 3 {
		t.Errorf("exit code %d", p.ExitCode())
	}
}

func TestProcessDiesWithADyingParent(t *testing.T) {
	out, err := helper("parent").Output()
	if err == nil {
		t.Fatal("the parent ended well, though it killed itself")
	}
	var pid int
	line, _ := bufio.NewReader(strings.NewReader(string(out))).ReadString('\n')
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("pid in %q: %v", out, err)
	}
	Eventually(t, time.Minute, "end of the orphan", func() error {
		if alive(pid) {
			return fmt.Errorf("process %d is still there", pid)
		}
		return nil
	})
}

func TestServerTriesOtherPortsWhenItsOwnAreTaken(t *testing.T) {
	var tried []int
	plan := plan{
		name:  "helper",
		ports: 1,
		command: func(ports []int) (*exec.Cmd, error) {
			tried = append(tried, ports[0])
			if len(tried) == 1 {
				return helper("fail"), nil
			}
			return helper("wait"), nil
		},
	}
	plan.ready = func([]int) error {
		if len(tried) == 1 {
			return errors.New("no answer")
		}
		return nil
	}
	s := startServer(t, plan)
	if len(tried) != 2 || tried[0] == tried[1] {
		t.Errorf("tried ports %v", tried)
	}
	if s.Addr() != loopback(tried[1]) {
		t.Errorf("address is %s after ports %v", s.Addr(), tried)
	}
}

func TestFreePortIsBelowTheEphemeralRangeAndGivenOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] || port < lowestPort || port >= firstEphemeralPort() {
			t.Errorf("port %d", port)
		}
		seen[port] = true
	}
}

func TestCPUTicks(t *testing.T) {
	const stat = "42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 250 17 0 0 20 0 1 0 99 1 1\n"
	if ticks, err := cpuTicks(stat); err != nil || ticks != 267 {
		t.Errorf("cpuTicks = %d, %v", ticks, err)
	}
	if _, err := cpuTicks("42 (x) S"); err == nil {
		t.Error("a short line was taken")
	}
}

func TestOutputKeepsTheEnd(t *testing.T) {
	var o output
	for i := range 3 * maxOutput / 8 {
		fmt.Fprintf(&o, "%07d\n", i)
	}
	if len(o.String()) > 2*maxOutput {
		t.Errorf("kept %d bytes", len(o.String()))
	}
	if got, want := o.tail(1), fmt.Sprintf("%07d", 3*maxOutput/8-1); got != want {
		t.Errorf("last line is %q, want %q", got, want)
	}
}

func TestParseStats(t *testing.T) {
	got := parseStats("a.b: 3\nc: No recorded values\nd.e: P0(1,2)\nf: 0\n")
	if len(got) != 2 || got["a.b"] != 3 {
		t.Errorf("parseStats = %v", got)
	}
}
