package demo

import "syscall"

// endWithUs has the kernel end a child should this process die without ending it.
func endWithUs() *syscall.SysProcAttr {
	// A group of its own: an interrupt at the terminal reaches us first, and the load ends before Envoy.
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
