package upstream

import "time"

// Health is what an upstream as a whole is at, one word of a closed set. It is no machine of its own: the slots hold the truth,
// and it is derived from them whenever somebody asks.
type Health string

// The words.
const (
	HealthIdle       Health = "idle"          // without a connection until a call wants one
	HealthConnecting Health = "connecting"    // the first attempt, or one after a rest
	HealthReady      Health = "ready"         // all is well
	HealthDegraded   Health = "degraded"      // takes calls, and something is wrong
	HealthCrashLoop  Health = "crash-looping" // has failed several times in a row; the next try takes its time
	HealthFailed     Health = "failed"        // has no connection; there will be a next try, unless its configuration is wrong
	HealthDraining   Health = "draining"      // taken out of the configuration, with calls under way
	HealthStopped    Health = "stopped"       // has ended
)

// Healths is the closed set.
var Healths = []Health{HealthIdle, HealthConnecting, HealthReady, HealthDegraded, HealthCrashLoop, HealthFailed, HealthDraining, HealthStopped}

// crashLoop is how many failures in a row make a crash loop.
const crashLoop = 3

// facts are what the health of an upstream follows from.
type facts struct {
	stopped, retiring, mistaken bool
	connected                   int  // shared slots with a connection
	broken                      int  // shared slots without one because of a failure
	idle                        bool // a shared slot rests
	waking                      bool // a shared slot that rested is being connected
	failures                    int  // in a row, the most of any shared slot
	missed                      int  // probes in a row without an answer
	listsBroken                 bool // not all lists could be fetched
}

func (f facts) health() Health {
	switch {
	case f.stopped:
		return HealthStopped
	case f.retiring:
		return HealthDraining
	case f.mistaken:
		return HealthFailed
	case f.connected > 0 && (f.broken > 0 || f.missed > 0 || f.listsBroken):
		return HealthDegraded
	case f.connected > 0:
		return HealthReady
	case f.idle:
		return HealthIdle
	case f.failures >= crashLoop && !f.waking:
		return HealthCrashLoop
	case f.broken > 0:
		return HealthFailed
	}
	return HealthConnecting
}

// note adds what one shared slot contributes. u.mu is held.
func (f *facts) note(s *slot) {
	if s.asks() {
		f.idle = true // the server is there for those who send a credential
		return
	}
	f.failures = max(f.failures, s.failures)
	f.missed = max(f.missed, s.missed)
	switch {
	case s.conn != nil:
		f.connected++
	case s.state == StateIdle:
		f.idle = true
	case s.rested:
		f.waking = true
	case s.state == StateFailed:
		f.broken++
	}
}

// Listed tells how the last fetching of the lists went: nil where they are whole.
func (u *Upstream) Listed(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listFailure = nil
	if err != nil {
		u.listFailure = &Failure{Stage: "list", Message: u.mask.text(err.Error()), At: time.Now()}
	}
}
