package parts

import (
	"strings"
	"sync"
)

// maxOutput is how much of a process's output is kept, in bytes: its end.
const maxOutput = 1 << 20

// output keeps the newest bytes that a process wrote, standard output and
// standard error in the order they came. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, p...)
	if len(o.buf) > 2*maxOutput {
		o.buf = append(o.buf[:0], o.buf[len(o.buf)-maxOutput:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.buf)
}

// tail returns the last n lines.
func (o *output) tail(n int) string {
	lines := strings.Split(strings.TrimRight(o.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
