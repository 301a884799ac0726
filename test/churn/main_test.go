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

// length is how long the trouble lasts: what the environment variable CHURN says, or a few seconds.
func length(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CHURN")
	if text == "" {
		return 12 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CHURN: %v", err)
	}
	return d
}
