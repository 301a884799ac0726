package process

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Ledger keeps the children of this process where the next one finds those that outlive it. Its methods must not block
// for long.
type Ledger interface {
	KeepChild(pid int, record []byte) error
	DropChild(pid int)
	// Children gives what was kept and not dropped. The bytes may be anything.
	Children() map[int][]byte
}

// childRecord is what is kept of a child. A process is the recorded one only if its number, its start and the run of the
// system are the same.
type childRecord struct {
	PID      int    `json:"pid"`
	Started  uint64 `json:"started"` // clock ticks since the start of the system, as in /proc/PID/stat
	Boot     string `json:"boot"`
	Upstream string `json:"upstream"`
	// Pipes are the child's stdin, stdout and stderr. Whoever in its group still has one of them was started by it.
	Pipes []string `json:"pipes,omitempty"`
	// Cgroup is the directory of the child's own cgroup.
	Cgroup string `json:"cgroup,omitempty"`
}

// keep records a child right after its start.
func (c *Child) keep(pipes []string) {
	if c.home.Ledger == nil {
		return
	}
	r, ok := recordOf(c.cmd.Process.Pid)
	if !ok {
		return
	}
	r.Upstream, r.Pipes, r.Cgroup = c.home.Upstream, pipes, c.cgroup.path()
	b, err := json.Marshal(r)
	if err == nil {
		err = c.home.Ledger.KeepChild(r.PID, b)
	}
	if err != nil {
		c.home.Log.Warn("the child is not recorded; after a crash of the proxy it may stay behind", zap.Error(err))
	}
}

// drop forgets a child of which nothing is left.
func (c *Child) drop() {
	if c.home.Ledger != nil {
		c.home.Ledger.DropChild(c.cmd.Process.Pid)
	}
}

// EndLeftovers ends what an earlier process has left behind: the groups of recorded children that still are who they were.
// It returns when they are gone, after a few seconds at most.
func EndLeftovers(l Ledger, log *zap.Logger) {
	var ends sync.WaitGroup
	for pid, b := range l.Children() {
		var r childRecord
		if json.Unmarshal(b, &r) != nil || r.PID != pid {
			l.DropChild(pid)
			continue
		}
		ends.Go(func() {
			if r.lives() {
				log.Info("a child of an earlier process is ended", zap.String("upstream", r.Upstream), zap.Int("pid", r.PID))
				r.end()
			}
			if r.isHere() {
				removeCgroup(r.Cgroup)
			}
			l.DropChild(pid)
		})
	}
	ends.Wait()
}

// end asks the group to end and then makes it. Its stdin has been closed since the earlier process ended.
func (r *childRecord) end() {
	killGroup(r.PID, false)
	if !r.goneWithin(graceAfterTerm) {
		killGroup(r.PID, true)
		r.goneWithin(graceForGroup)
	}
}

func (r *childRecord) goneWithin(limit time.Duration) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < limit; <-tick.C {
		if !groupExists(r.PID) {
			return true
		}
	}
	return false
}

// shares says whether one of these pipes is the child's.
func (r *childRecord) shares(pipes []string) bool {
	return slices.ContainsFunc(pipes, func(p string) bool { return slices.Contains(r.Pipes, p) })
}
