package httpd

import (
	"net/http"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// recorder notes what the access log tells about a response. It adds no buffering: flushes and deadlines reach the
// connection. It is not reused, because a handler's leftovers may still hold it when the request is over.
type recorder struct {
	http.ResponseWriter
	begun  time.Time
	status int // 0 until the response begins
	bytes  int64
	why    string // why the door refused, for the log
}

var _ http.Flusher = (*recorder)(nil)

func newRecorder(w http.ResponseWriter) *recorder {
	return &recorder{ResponseWriter: w, begun: time.Now()}
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status. Informational ones do not begin the response.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush is for callers that ask for an http.Flusher.
func (w *recorder) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController, which passes the error on.
func (w *recorder) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *recorder) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// maxLoggedPath bounds what one request can put into the log.
const maxLoggedPath = 200

// logAccess writes one record per request: debug, or info where somebody may want to know why it was refused. Headers
// and queries stay out, they carry credentials. A wrong path or method is left at debug, scanners try them all day.
func (d *Door) logAccess(w *recorder, r *http.Request) {
	level := zapcore.DebugLevel
	if w.status >= 400 && w.status != http.StatusNotFound && w.status != http.StatusMethodNotAllowed {
		level = zapcore.InfoLevel
	}
	record := d.log.Check(level, "request")
	if record == nil {
		return
	}
	w.begin()
	fields := []zap.Field{
		zap.String("method", r.Method),
		zap.String("path", r.URL.Path[:min(len(r.URL.Path), maxLoggedPath)]),
		zap.Int("status", w.status),
		zap.Int64("bytes", w.bytes),
		zap.Duration("took", time.Since(w.begun)),
		zap.String("remote", r.RemoteAddr),
	}
	if w.why != "" {
		fields = append(fields, zap.String("why", w.why))
	}
	record.Write(fields...)
}
