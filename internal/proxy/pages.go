package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
)

// Lists are served in pages of at most pageItems: nearly every list is one page, since many clients read no second one.
const pageItems = 1000

// pages keeps the last snapshots that somebody may still be reading, and makes the cursors for them. A cursor holds for
// one snapshot, view and principal, and dies with the process.
type pages struct {
	key [32]byte

	mu     sync.Mutex
	serial uint64
	kept   []keptSnapshot // the newest is the last
}

type keptSnapshot struct {
	serial uint64
	snap   *snapshot
}

const keptSnapshots = 64

func newPages() *pages {
	p := &pages{}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// keep remembers a snapshot for those who are in the middle of it, and gives its serial number.
func (p *pages) keep(s *snapshot) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.snap == s {
			return k.serial
		}
	}
	p.serial++
	p.kept = append(p.kept, keptSnapshot{p.serial, s})
	if len(p.kept) > keptSnapshots {
		p.kept = p.kept[1:]
	}
	return p.serial
}

func (p *pages) find(serial uint64) *snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.serial == serial {
			return k.snap
		}
	}
	return nil
}

// cursor seals a place in a list.
func (p *pages) cursor(c *Caller, k Kind, serial uint64, offset int) string {
	b := binary.BigEndian.AppendUint64(nil, serial)
	b = binary.BigEndian.AppendUint32(b, uint32(offset))
	return base64.RawURLEncoding.EncodeToString(append(b, p.mac(b, c, k)...))
}

// open gives the place that a cursor stands for; false for one that is not ours, or not this caller's.
func (p *pages) open(text string, c *Caller, k Kind) (s *snapshot, offset int, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 12+16 || !hmac.Equal(b[12:], p.mac(b[:12], c, k)) {
		return nil, 0, false
	}
	s = p.find(binary.BigEndian.Uint64(b))
	return s, int(binary.BigEndian.Uint32(b[8:])), s != nil
}

func (p *pages) mac(place []byte, c *Caller, k Kind) []byte {
	h := hmac.New(sha256.New, p.key[:])
	for _, part := range []string{string(place), c.View, c.identity(), k.String(), c.Era.String()} {
		_ = binary.Write(h, binary.BigEndian, uint32(len(part)))
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:16]
}
