// Package obs makes the logger and the metrics registry of one running proxy. Nothing here is global: whoever logs or
// counts gets its logger or registerer as an argument, so several proxies can live in one process.
package obs

import (
	"errors"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// ErrLogSetting is wrapped by the errors of NewLogger about a level or format that does not exist.
var ErrLogSetting = errors.New("invalid log setting")

// NewLogger makes the logger that the configuration asks for: JSON or console records on stderr, or appended to a
// file. Empty settings mean level info, format json, stderr. Standard output is never used, it belongs to the protocol
// when we serve over stdio. The closer flushes and closes the file; stderr stays open. The logger may be used by many
// goroutines at once.
func NewLogger(c config.Log) (*zap.Logger, io.Closer, error) {
	level, err := parseLevel(c.Level)
	if err != nil {
		return nil, nil, err
	}
	enc, err := newEncoder(c.Format)
	if err != nil {
		return nil, nil, err
	}
	if c.File == "" {
		return newLogger(enc, os.Stderr, level), closeNothing{}, nil
	}
	// 0600: a log names callers and tools, which is nobody else's business on a shared machine.
	f, err := os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log file: %w", err)
	}
	return newLogger(enc, f, level), f, nil
}

func newLogger(enc zapcore.Encoder, f *os.File, level zapcore.Level) *zap.Logger {
	out := zapcore.Lock(f)
	return zap.New(zapcore.NewCore(enc, out, level), zap.ErrorOutput(zapcore.Lock(os.Stderr)))
}

func parseLevel(s string) (zapcore.Level, error) {
	switch s {
	case "debug":
		return zapcore.DebugLevel, nil
	case "", "info":
		return zapcore.InfoLevel, nil
	case "warn":
		return zapcore.WarnLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	}
	return 0, fmt.Errorf("%w: level %q is none of debug, info, warn, error", ErrLogSetting, s)
}

func newEncoder(format string) (zapcore.Encoder, error) {
	ec := zapcore.EncoderConfig{
		TimeKey:        "ts",
		LevelKey:       "level",
		NameKey:        "logger",
		MessageKey:     "msg",
		StacktraceKey:  "stack",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeTime:     zapcore.ISO8601TimeEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeName:     zapcore.FullNameEncoder,
	}
	switch format {
	case "", "json":
		return zapcore.NewJSONEncoder(ec), nil
	case "console":
		ec.EncodeLevel = zapcore.CapitalLevelEncoder
		return zapcore.NewConsoleEncoder(ec), nil
	}
	return nil, fmt.Errorf("%w: format %q is none of json, console", ErrLogSetting, format)
}

// closeNothing is the closer of a logger that opened nothing.
type closeNothing struct{}

func (closeNothing) Close() error { return nil }
