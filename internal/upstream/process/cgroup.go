package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// ErrNoLimits means that the limits of a child cannot be held here.
var ErrNoLimits = errors.New("the limits cannot be held")

// cgroup is the cgroup (v2) of one child; a nil one is none.
type cgroup struct {
	dir    string
	limits config.ChildLimits
}

// cgroups make the cgroups of children below the one that was delegated to this process.
type cgroups struct {
	dir string
	// prefix begins the names of all that this process makes.
	prefix string
	mkdir  func(dir string, mode fs.FileMode) error
	count  atomic.Uint64
}

// controllersFor are those that the limits need.
func controllersFor(l config.ChildLimits) (names []string) {
	if l.Memory > 0 {
		names = append(names, "memory")
	}
	if l.Pids > 0 {
		names = append(names, "pids")
	}
	return names
}

// limited makes the cgroup that an upstream's limits need; nil where there are none.
func limited(l config.ChildLimits) (*cgroup, error) {
	if l == (config.ChildLimits{}) {
		return nil, nil
	}
	g, err := ownCgroups()
	if err != nil {
		return nil, err
	}
	return g.newCgroup(l)
}

// newCgroup makes a cgroup for one child, with its limits.
func (g *cgroups) newCgroup(l config.ChildLimits) (*cgroup, error) {
	if err := g.delegate(controllersFor(l)); err != nil {
		return nil, err
	}
	c := &cgroup{dir: filepath.Join(g.dir, fmt.Sprintf("%s%d", g.prefix, g.count.Add(1))), limits: l}
	if err := g.mkdir(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: making a cgroup: %w", ErrNoLimits, err)
	}
	if err := c.set(); err != nil {
		c.remove()
		return nil, fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	return c, nil
}

// set writes the limits. With memory.oom.group a server is ended as a whole, and not only the part of it that was unlucky.
func (c *cgroup) set() error {
	if c.limits.Memory > 0 {
		if err := c.write("memory.max", strconv.FormatInt(c.limits.Memory, 10)); err != nil {
			return err
		}
		for file, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
			if err := c.write(file, value); err != nil && !errors.Is(err, fs.ErrNotExist) { // older systems lack them
				return err
			}
		}
	}
	if c.limits.Pids > 0 {
		return c.write("pids.max", strconv.Itoa(c.limits.Pids))
	}
	return nil
}

func (c *cgroup) write(file, value string) error {
	return writeControl(filepath.Join(c.dir, file), value)
}

// writeControl writes to a file that the system made: it must be there.
func writeControl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// delegate lets cgroups below the own one have these controllers. That needs them in the own one, and no processes in it
// beside those below (the rule of "no internal processes" of cgroups(7)), so this process goes into one below first.
func (g *cgroups) delegate(names []string) error {
	have, err := words(filepath.Join(g.dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	enabled, _ := words(filepath.Join(g.dir, "cgroup.subtree_control"))
	var missing []string
	for _, name := range names {
		switch {
		case !slices.Contains(have, name):
			return fmt.Errorf("%w: the controller %q is not delegated to the cgroup of the proxy (%s); a systemd unit does that with Delegate=yes", ErrNoLimits, name, g.dir)
		case !slices.Contains(enabled, name):
			missing = append(missing, "+"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := g.moveOut(); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	if err := writeControl(filepath.Join(g.dir, "cgroup.subtree_control"), strings.Join(missing, " ")); err != nil {
		return fmt.Errorf("%w: passing the controllers on below %s: %w; it must be delegated to the proxy and hold no other process", ErrNoLimits, g.dir, err)
	}
	return nil
}

// ownLeaf is the cgroup that this process goes to, so that the one above it can pass controllers on.
const ownLeaf = "mcp-proxy"

// moveOut moves this process with what it has started into a cgroup below. Processes of others stay.
func (g *cgroups) moveOut() error {
	leaf := filepath.Join(g.dir, ownLeaf)
	if err := g.mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	for range 3 { // what is started meanwhile begins in the old one
		ours, err := g.ownProcesses()
		if err != nil || len(ours) == 0 {
			return err
		}
		for _, pid := range ours {
			err := writeControl(filepath.Join(leaf, "cgroup.procs"), strconv.Itoa(pid))
			if err != nil && pid == os.Getpid() {
				return fmt.Errorf("moving the proxy into %s: %w", leaf, err)
			}
		}
	}
	return nil
}

func words(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	return strings.Fields(string(b)), err
}

// outOfMemory says whether the system has ended a process of the child for want of memory.
func (c *cgroup) outOfMemory() bool {
	if c == nil || c.limits.Memory == 0 {
		return false
	}
	return c.event("memory.events", "oom_kill") > 0
}

// event reads one line of a file of counters.
func (c *cgroup) event(file, name string) int64 {
	all, _ := words(filepath.Join(c.dir, file))
	for i := 0; i+1 < len(all); i += 2 {
		if all[i] == name {
			n, _ := strconv.ParseInt(all[i+1], 10, 64)
			return n
		}
	}
	return 0
}

// path is the directory; empty for none.
func (c *cgroup) path() string {
	if c == nil {
		return ""
	}
	return c.dir
}

// kill ends everything in the cgroup.
func (c *cgroup) kill() {
	if c != nil {
		_ = c.write("cgroup.kill", "1")
	}
}

// remove ends whatever is left in the cgroup, also what has left the child's process group, and removes it.
func (c *cgroup) remove() { removeCgroup(c.path()) }

// cgroupGone is how long what is in a cgroup may take to end once it is killed.
const cgroupGone = 2 * time.Second

func removeCgroup(dir string) {
	if dir == "" || !strings.HasPrefix(filepath.Base(dir), childPrefix) {
		return
	}
	if _, err := os.Stat(dir); err != nil {
		return
	}
	_ = writeControl(filepath.Join(dir, "cgroup.kill"), "1")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < cgroupGone; <-tick.C {
		if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// childPrefix begins the name of every cgroup that is made for a child.
const childPrefix = "mcp-child-"
