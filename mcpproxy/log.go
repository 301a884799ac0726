package mcpproxy

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger makes the logger of the proxy of one of log/slog: from level on, which is one of those of the configuration.
func newLogger(l *slog.Logger, level string) *zap.Logger {
	if l == nil {
		return zap.NewNop()
	}
	least, err := zapcore.ParseLevel(level)
	if err != nil {
		least = zapcore.InfoLevel
	}
	return zap.New(&slogCore{to: l.Handler(), least: least})
}

// slogCore hands records to a handler of log/slog.
type slogCore struct {
	to    slog.Handler
	least zapcore.Level
}

var levels = map[zapcore.Level]slog.Level{zapcore.DebugLevel: slog.LevelDebug, zapcore.InfoLevel: slog.LevelInfo, zapcore.WarnLevel: slog.LevelWarn}

func levelOf(l zapcore.Level) slog.Level {
	if known, ok := levels[l]; ok {
		return known
	}
	return slog.LevelError
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(l zapcore.Level) bool {
	return l >= c.least && c.to.Enabled(context.Background(), levelOf(l))
}

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{to: c.to.WithAttrs(attrsOf(fields)), least: c.least}
}

// Check implements zapcore.Core.
func (c *slogCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, levelOf(e.Level), e.Message, 0)
	if e.LoggerName != "" {
		r.AddAttrs(slog.String("logger", e.LoggerName))
	}
	r.AddAttrs(attrsOf(fields)...)
	return c.to.Handle(context.Background(), r)
}

// Sync implements zapcore.Core.
func (c *slogCore) Sync() error { return nil }

// attrsOf encodes fields in their order, one by one, so that one of a kind that nobody knows costs no other.
func attrsOf(fields []zapcore.Field) []slog.Attr {
	out := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		m := zapcore.NewMapObjectEncoder()
		f.AddTo(m)
		for name, v := range m.Fields {
			out = append(out, slog.Any(name, v))
		}
	}
	return out
}
