package parts

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the kernel's USER_HZ, in which /proc counts CPU time. It has
// been 100 a second on every architecture that Go supports.
const clockTicks = 100

// CPU returns the CPU time that the process has used so far, user and system,
// in steps of 10 ms. After its end it is the total; 0 if it cannot be read.
func (p *Process) CPU() time.Duration {
	if p.hasEnded() {
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0
	}
	ticks, err := cpuTicks(string(stat))
	if err != nil {
		return 0
	}
	return time.Duration(ticks) * time.Second / clockTicks
}

// cpuTicks reads utime and stime, fields 14 and 15, off a line of
// /proc/PID/stat. Field 2, the program's name in parentheses, may itself hold
// spaces and parentheses, so counting starts behind its last one.
func cpuTicks(stat string) (int64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("short stat line %q", stat)
	}
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[stime], 10, 64)
	return user + system, err
}

// RSS returns the process's resident memory in bytes; 0 if it cannot be read.
func (p *Process) RSS() int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil || p.hasEnded() {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
