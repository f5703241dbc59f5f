package controller

import (
	"bytes"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	weirlog "github.com/weirproxy/weir/internal/log"
)

// log keeps what a controller writes. It is safe for concurrent use.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *log) logger() *zap.Logger { return weirlog.New(l, zapcore.InfoLevel, "weir-controller") }
