package main

import "syscall"

// apart gives a process a group of its own, so that an interrupt at the terminal reaches this one alone, which ends
// them in order. The kernel ends it should this process die first.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
