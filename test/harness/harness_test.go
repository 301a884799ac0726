package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets this binary stand in for the programs that the tests start.
func TestMain(m *testing.M) {
	switch os.Getenv("HARNESS_CHILD") {
	case "fail":
		_, _ = os.Stderr.WriteString("cannot go on\n")
		os.Exit(3)
	case "hang":
		select {}
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, mode string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(Command{Name: mode, Args: []string{self}, Env: []string{"HARNESS_CHILD=" + mode}, Logs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestReadyReportsAnEarlyEnd(t *testing.T) {
	p := start(t, "fail")
	err := p.Ready(t.Context(), time.Minute, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "cannot go on") {
		t.Errorf("Ready = %v, want the exit status and the log", err)
	}
}

func TestStopReportsHowItEnded(t *testing.T) {
	p := start(t, "hang")
	if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("Stop = %v, want the signal that ended it", err)
	}
}

func TestRootHasTheModule(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Error(err)
	}
}
