// Package log makes the programs' logger: zap, JSON, a line a state change and never one a request.
// Field names are the constants of fields.go, so that a query written once works for every program.
// No secret is ever a field: identities of clients, header values and passwords are not logged.
package log

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirproxy/weir/internal/version"
)

// Levels are the names that ParseLevel knows, most verbose first.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// ParseLevel reads a level's name; "" is info.
func ParseLevel(name string) (zapcore.Level, error) {
	if name == "" {
		return zapcore.InfoLevel, nil
	}
	for _, known := range Levels() {
		if name == known {
			return zapcore.ParseLevel(name)
		}
	}
	return zapcore.InfoLevel, fmt.Errorf("log level %q: use one of %v", name, Levels())
}

// New is a logger of one JSON object a line, with the program's name and version in each. Sampling is
// off: a state change must not be lost. w need not be safe for concurrent use.
func New(w io.Writer, level zapcore.LevelEnabler, program string) *zap.Logger {
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		TimeKey:        "time",
		LevelKey:       "level",
		NameKey:        "part",
		MessageKey:     "msg",
		StacktraceKey:  zapcore.OmitKey,
		CallerKey:      zapcore.OmitKey,
		EncodeTime:     zapcore.RFC3339NanoTimeEncoder,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
	})
	core := zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), level)
	return zap.New(core, zap.ErrorOutput(zapcore.Lock(zapcore.AddSync(w)))).
		With(zap.String(Program, program), zap.String(Version, version.Short()))
}
