package upstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// unitKey maps a unit to the slot it gets; empty for everybody's. Whatever the sharing, those with different credentials
// get different slots.
func (u *Upstream) unitKey(unit Unit) (key string, once bool) {
	creds := u.binding(unit)
	switch {
	case creds != nil && u.cfg.Sharing == config.SharingShared:
		return creds.slotKey(), false
	case creds != nil && u.cfg.Sharing == config.SharingCall:
		return u.freeKey(creds), false
	case u.cfg.Sharing != config.SharingSession:
		return "", false
	case u.cfg.Fresh, unit.Key == "" && !creds.tellsWhom():
		return fmt.Sprintf("call/%d", u.NextID()), true
	case unit.Key == "":
		return creds.slotKey(), false // the credential tells this caller from others
	case creds != nil:
		return unit.Key + "/" + creds.Key, false
	}
	return unit.Key, false
}

// freeKey names a slot with these credentials that no call uses, or a new one.
func (u *Upstream) freeKey(creds *Credentials) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, s := range u.keyed {
		if s.creds.key() == creds.Key && !s.lists() && s.inflight == 0 && s.conn != nil && s.conn.Err() == nil {
			return key
		}
	}
	return fmt.Sprintf("call/%d", u.NextID())
}

// keyedSlot finds or makes the slot of a unit.
func (u *Upstream) keyedSlot(key string, unit Unit) (*slot, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.closedOrBroken(); err != nil {
		return nil, err
	}
	if s := u.keyed[key]; s != nil {
		s.lastUse = time.Now() // it must not rest before the call has taken it
		return s, nil
	}
	creds := u.binding(unit)
	// A server that nobody can reach is not started again by each session.
	if d := u.shared[0]; d.state == StateFailed && (creds == nil || u.asksCallers() == nil) {
		return nil, u.down(d)
	}
	who := unit.Principal
	if who == "" && creds != nil {
		who = creds.slotKey()
	}
	if err := u.room(key, who, creds); err != nil {
		u.opts.Count.Limit(count.LimitSlots)
		return nil, &Error{Upstream: u.ID, Reason: ReasonOverloaded, Err: err}
	}
	return u.addKeyed(key, who, unit, creds), nil
}

// addKeyed makes the slot of a unit, for which there is room. u.mu is held.
func (u *Upstream) addKeyed(key, who string, unit Unit, creds *Credentials) *slot {
	var s *slot
	if creds == nil {
		s = u.takeSpare()
	}
	if s == nil {
		declares := unit.Capabilities
		if key == creds.slotKey() {
			declares = "" // it lists for everybody who has these credentials
		}
		s = u.newKeyed(key, declares, creds)
	}
	s.key, s.principal, s.counted, s.lastUse = key, who, true, time.Now()
	if u.cfg.Sharing == config.SharingSession && key != creds.slotKey() {
		s.owner, s.ends = unit.Key, unit.Ends // otherwise it outlives the session that happens to need it first
	}
	if s.ends && creds != nil {
		for _, old := range u.keyed {
			if old.owner == unit.Key {
				old.ends = false // the session has another credential by now; this one is idle soon
			}
		}
	}
	u.keyed[key] = s
	if creds == nil && u.own(false) < u.mostKeyed(false) {
		u.makeSpare()
	}
	return s
}

// own counts the slots of units, or those that list for credentials. u.mu is held.
func (u *Upstream) own(lists bool) (n int) {
	for _, s := range u.keyed {
		if s.lists() == lists {
			n++
		}
	}
	return n
}

// mostKeyed is how many slots units may have, or those that list for credentials.
func (u *Upstream) mostKeyed(lists bool) int {
	switch {
	case u.cfg.Sharing == config.SharingSession && u.cfg.Instances > 1 && !lists:
		return u.cfg.Instances
	case len(u.bound) > 0 && !u.isPipe():
		return maxCredentialSlots
	}
	return maxKeyedSlots
}

// room takes a place for another slot. Where there is none, the slot with credentials that nobody has used for longest makes
// room: another can be made for them at any time. u.mu is held.
func (u *Upstream) room(key, who string, creds *Credentials) error {
	lists := creds != nil && key == creds.slotKey()
	for {
		err := errUpstreamsTaken
		if u.own(lists) < u.mostKeyed(lists) {
			err = u.opts.Quota.take(who)
		}
		if err == nil {
			return nil
		}
		if !u.evict(func(s *slot) bool {
			return (!errors.Is(err, errOwnSlotsTaken) || s.principal == who) && (!errors.Is(err, errUpstreamsTaken) || s.lists() == lists)
		}) {
			return err
		}
	}
}

// evict ends a slot with credentials that is idle, one that helps; false where there is none. u.mu is held.
func (u *Upstream) evict(helps func(*slot) bool) bool {
	var oldest *slot
	for _, s := range u.keyed {
		if s.creds == nil || s.ends || s.inflight > 0 || s.hears() || s.conn == nil || !helps(s) {
			continue
		}
		if oldest == nil || s.lastUse.Before(oldest.lastUse) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	oldest.conn, oldest.state = nil, StateDraining
	u.drop(oldest)
	oldest.uncount()
	oldest.stop()
	return true
}

// EndUnit ends the connections that belong to a unit, a session that is over.
func (u *Upstream) EndUnit(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.keyed {
		if s.owner == key {
			s.stop()
		}
	}
}

// EndIdleUnits ends the connections of units without an end of their own that nobody has used for a while.
func (u *Upstream) EndIdleUnits(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.keyed {
		if !s.ends && s.inflight == 0 && !s.hears() && now.Sub(s.lastUse) > idleUnit {
			s.stop()
		}
	}
}
