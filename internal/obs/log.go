// Package obs makes the logger and the metrics registry of one running proxy. Nothing here is global: whoever logs or
// counts gets its logger or registerer as an argument, so several proxies can live in one process.
package obs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

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
func NewLogger(c config.Log) (*zap.Logger, *Control, error) {
	least, err := parseLevel(c.Level)
	if err != nil {
		return nil, nil, err
	}
	level := zap.NewAtomicLevelAt(least)
	enc, err := newEncoder(c.Format)
	if err != nil {
		return nil, nil, err
	}
	if c.File == "" {
		log, out := newLogger(enc, os.Stderr, level)
		return log, &Control{level, out.Stop}, nil
	}
	// 0600: a log names callers and tools, which is nobody else's business on a shared machine.
	f, err := os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log file: %w", err)
	}
	log, out := newLogger(enc, f, level)
	return log, &Control{level, func() error { return errors.Join(out.Stop(), f.Close()) }}, nil
}

// flushInterval is how long a record may wait before it is written. A write for each would cost more than the call that
// it tells of. Records from warning up are written at once.
const flushInterval = 100 * time.Millisecond

func newLogger(enc zapcore.Encoder, f *os.File, level zapcore.LevelEnabler) (*zap.Logger, *zapcore.BufferedWriteSyncer) {
	out := &zapcore.BufferedWriteSyncer{WS: unsynced{f}, Size: 256 << 10, FlushInterval: flushInterval}
	core := urgent{zapcore.NewCore(enc, out, level), out}
	return zap.New(core, zap.ErrorOutput(zapcore.Lock(os.Stderr))), out
}

// unsynced writes to a file and leaves it to the system when that reaches the disk.
type unsynced struct{ io.Writer }

func (unsynced) Sync() error { return nil }

// urgent is a core that writes important records at once.
type urgent struct {
	zapcore.Core
	out *zapcore.BufferedWriteSyncer
}

func (u urgent) With(fields []zapcore.Field) zapcore.Core { return urgent{u.Core.With(fields), u.out} }

func (u urgent) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if u.Enabled(e.Level) {
		return ce.AddCore(e, u)
	}
	return ce
}

func (u urgent) Write(e zapcore.Entry, fields []zapcore.Field) error {
	err := u.Core.Write(e, fields)
	if e.Level >= zapcore.WarnLevel {
		err = errors.Join(err, u.out.Sync())
	}
	return err
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

// Control changes and ends a logger.
type Control struct {
	level zap.AtomicLevel
	close func() error
}

// SetLevel changes what is logged from now on. It may be called while others log.
func (c *Control) SetLevel(level string) error {
	l, err := parseLevel(level)
	if err != nil {
		return err
	}
	c.level.SetLevel(l)
	return nil
}

// Close writes what waits and closes what was opened.
func (c *Control) Close() error { return c.close() }
