package churn

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	testmcp.Patience = time.Minute // forty servers start at once
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

// length is how long the trouble lasts, as the environment variable CHURN says. Without it nothing happens: forty servers
// and fifty clients would take the time of all the other tests that run.
func length(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CHURN")
	if text == "" {
		t.Skip("CHURN does not say how long; make churn sets it")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CHURN: %v", err)
	}
	return d
}
