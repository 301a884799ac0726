package session

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

func TestABodyThatDidNotComeInTimeEndsTheConnection(t *testing.T) {
	w := httptest.NewRecorder()
	(&Manager{}).refuseBody(w, fmt.Errorf("reading: %w", os.ErrDeadlineExceeded))
	if w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" {
		t.Errorf("HTTP %d, %v", w.Code, w.Header())
	}
}
