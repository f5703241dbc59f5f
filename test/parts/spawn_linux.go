package parts

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner starts all processes on one thread that lives as long as this
// process: the kernel sends a child its death signal when the thread that
// started it ends, which for an ordinary goroutine's thread may be any time.
var spawner = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go spawnForever(calls)
	return calls
})

// spawnForever has a name by which a test for leaks can leave it out.
func spawnForever(calls <-chan func()) {
	runtime.LockOSThread()
	for call := range calls {
		call()
	}
}

// spawn starts cmd such that it dies with this process, however this one ends,
// and is not reached by the terminal's signals.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	result := make(chan error, 1)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
