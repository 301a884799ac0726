package httpd

import (
	"context"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is longer than the keep-alive of common load balancers, so that they close first and never send a
	// request into a connection that we are closing.
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// NewServer makes the HTTP server of one listener. The context is the parent of every request's: ending it ends what
// is still running, streams included, which Shutdown would wait for. There is no time limit for a whole request or
// response: calls and streams have their own.
func NewServer(ctx context.Context, h http.Handler, logger *zap.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(logWriter{logger.Named("http")}, "", 0),
	}
}

// logWriter turns the lines of net/http into log records.
type logWriter struct{ log *zap.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Warn("the HTTP server reports", zap.String("error", strings.TrimSpace(string(p))))
	return len(p), nil
}
