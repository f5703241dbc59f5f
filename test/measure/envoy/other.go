//go:build !linux

// Command envoy measures what a check costs behind a real Envoy. It needs Linux: epoll, and /proc for CPU time.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench-envoy: needs Linux: it drives its load by epoll and reads CPU time from /proc")
	os.Exit(1)
}
