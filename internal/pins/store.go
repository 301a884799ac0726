// Package pins tells whether a tool is still what somebody has approved: against servers that show harmless tools to whoever
// reviews them, and others later. It knows tools as JSON, and nothing of protocols and processes. It is a leaf.
package pins

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Files keep one record for each server. Other processes may change them too.
type Files interface {
	// ReadApprovals gives what is kept of a server; nothing where nothing is.
	ReadApprovals(server string) ([]byte, error)
	// UpdateApprovals replaces what is kept by what change makes of it, while no other process does.
	UpdateApprovals(server string, change func(now []byte) ([]byte, error)) error
}

// Store knows what is approved. It is safe for concurrent use.
type Store struct {
	files    Files
	readOnly bool
	now      func() time.Time

	mu    sync.Mutex
	known map[string]*kept
	gen   uint64
}

// nowhere is where nothing is kept.
type nowhere struct{}

func (nowhere) ReadApprovals(string) ([]byte, error) { return nil, nil }

func (nowhere) UpdateApprovals(string, func([]byte) ([]byte, error)) error { return errNowhere }

var errNowhere = errors.New("approvals are kept nowhere")

// kept is what this process knows of one server.
type kept struct {
	rec *record
	sum [sha256.Size]byte // of the file that rec was read from or written to
	err error             // why the file cannot be read; then nothing is approved

	seen map[string]seen // by tool
}

// New makes a store over files. One that is read-only judges as any other and keeps nothing; without files it starts from
// nothing too.
func New(files Files, readOnly bool) *Store {
	if files == nil {
		files, readOnly = nowhere{}, true
	}
	return &Store{files: files, readOnly: readOnly, now: time.Now, known: map[string]*kept{}}
}

// Verdict is what is hidden of a server, and what has happened since the look before.
type Verdict struct {
	Waiting map[string]Waiting // by tool
	Events  []Event
	// Failed says why the record of the server could not be read or written. Where it could not be read, all waits.
	Failed error
}

// ErrUnreadable means that the approvals of a server cannot be read, so that nothing of it counts as approved.
var ErrUnreadable = errors.New("the approvals of this server cannot be read; all its tools are withheld until the file is repaired or removed")

// Judge tells what of a look is not approved.
func (s *Store) Judge(l Look) Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.load(l.Server)
	tools, v := k.define(l.Tools)
	if k.err != nil {
		return Verdict{Waiting: withholdAll(l.Tools), Failed: k.err}
	}
	rec := k.rec.clone()
	out := rec.judge(&l, tools, s.now())
	if out.changed && !s.readOnly {
		v.Failed = s.update(l.Server, k, func(r *record) error {
			out = r.judge(&l, tools, s.now())
			rec = r
			return nil
		})
	}
	k.rec = rec
	for name, w := range out.waiting {
		v.Waiting[name] = w
	}
	v.Events = out.events
	return v
}

// define reads the tools; one that cannot be read waits. Most are what they were at the look before, and need not be read.
func (k *kept) define(tools []Tool) ([]defined, Verdict) {
	out, v := make([]defined, 0, len(tools)), Verdict{Waiting: map[string]Waiting{}}
	for _, t := range tools {
		sum := sha256.Sum256(t.Raw)
		last, ok := k.seen[t.Name]
		if !ok || last.raw != sum {
			d, err := Define(t.Raw)
			if err != nil {
				v.Waiting[t.Name] = Waiting{Tool: t.Name, New: true}
				continue
			}
			last = seen{sum, d.Hash}
			k.remember(t.Name, last)
		}
		out = append(out, defined{t.Name, last.hash, t.Raw})
	}
	return out, v
}

// seen is a tool at the look before: the hash of how it was written, and that of its definition.
type seen struct {
	raw  [sha256.Size]byte
	hash string
}

// maxSeen bounds what is remembered of one server that always offers other tools.
const maxSeen = 50_000

func (k *kept) remember(name string, s seen) {
	if k.seen == nil || len(k.seen) >= maxSeen {
		k.seen = map[string]seen{}
	}
	k.seen[name] = s
}

func withholdAll(tools []Tool) map[string]Waiting {
	out := make(map[string]Waiting, len(tools))
	for _, t := range tools {
		out[t.Name] = Waiting{Tool: t.Name, New: true}
	}
	return out
}

// load gives what is known of a server, and reads it at the first time. s.mu is held.
func (s *Store) load(server string) *kept {
	if k := s.known[server]; k != nil {
		return k
	}
	k := &kept{}
	s.known[server] = k
	k.read(s.files.ReadApprovals(server))
	return k
}

func (k *kept) read(b []byte, err error) {
	rec := (*record)(nil)
	if err == nil {
		rec, err = decode(b)
	}
	if k.err = nil; err != nil {
		k.err, rec = fmt.Errorf("%w: %w", ErrUnreadable, err), &record{Tools: map[string]tool{}}
	}
	k.rec, k.sum = rec, sha256.Sum256(b)
}

// update changes the file of a server. Another process may have changed it, so it is read again first. s.mu is held.
func (s *Store) update(server string, k *kept, change func(*record) error) error {
	return s.files.UpdateApprovals(server, func(now []byte) ([]byte, error) {
		rec, err := decode(now)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if err := change(rec); err != nil {
			return nil, err
		}
		b, err := rec.encode(server)
		if err == nil {
			k.sum = sha256.Sum256(b)
		}
		return b, err
	})
}

// Generation changes whenever somebody else has changed what is approved.
func (s *Store) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gen
}

// Reload reads what other processes have changed, and tells what was approved, by server. What is not asked for is not read.
func (s *Store) Reload() map[string][]Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]Event{}
	for server, k := range s.known {
		b, err := s.files.ReadApprovals(server)
		if err == nil && sha256.Sum256(b) == k.sum {
			continue
		}
		before := k.rec
		k.read(b, err)
		out[server] = approvals(before, k.rec)
		s.gen++
	}
	return out
}

// Waiting lists what waits for approval, as it was last seen by whoever keeps the record.
func (s *Store) Waiting(server string) ([]Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.load(server)
	return k.rec.waiting(), k.err
}

// Approved tells how many tools of a server are approved.
func (s *Store) Approved(server string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.load(server).rec.Tools {
		if t.Approved != nil {
			n++
		}
	}
	return n
}

// ChangedError means that tools are not any more what somebody was shown and wanted to approve.
type ChangedError struct{ Tools []string }

func (e *ChangedError) Error() string {
	return "changed again meanwhile, look at them first: " + strings.Join(e.Tools, ", ")
}

// Approve approves these tools of a server, each by the hash of what was shown; all of them, or none.
func (s *Store) Approve(server string, picks []Waiting) error {
	hashes := make(map[string]string, len(picks))
	for _, w := range picks {
		hashes[w.Tool] = w.Hash
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.load(server)
	return s.update(server, k, func(r *record) error {
		if gone := r.approve(hashes, s.now()); len(gone) > 0 {
			slices.Sort(gone)
			return &ChangedError{gone}
		}
		k.rec, k.err = r, nil
		return nil
	})
}
