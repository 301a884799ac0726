package testmcp

import (
	"testing"
	"time"
)

func now() time.Time { return time.Now() }

// Eventually asks a condition again and again until it holds, and fails the test if it does not within Patience.
// It is for what gives no notice of its changes, such as processes and pages; records have Recorder.Wait.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !poll(Patience, condition) {
		t.Fatalf("no %s within %v", what, Patience)
	}
}

func poll(within time.Duration, condition func() bool) bool {
	late := time.NewTimer(within)
	defer late.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late.C:
			return condition()
		}
	}
	return true
}
