//go:build !linux

package main

import "syscall"

// apart gives a process a group of its own, so that an interrupt at the terminal reaches this one alone, which ends
// them in order.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
