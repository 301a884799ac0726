package wire

import (
	"cmp"
	"slices"
)

// Patch collects changes to single members of a message and renders the result; all other bytes stay as they are.
// Changes may be made to several objects, one within the other too. A change inside something that is removed or
// replaced is dropped, and of two changes to the same token the later holds. The objects handed in must stay unchanged
// until the result is rendered. A Patch is not safe for concurrent use; the zero value needs a Reset.
type Patch struct {
	raw   []byte
	n     int
	fixed [8]edit
	more  []edit
}

type action uint8

const (
	replace action = iota
	insert
	remove
)

// edit is one change, still in terms of members.
type edit struct {
	do    action
	seq   int
	span  Span    // replace: the token; insert: the place
	with  []byte  // new bytes
	name  string  // insert
	obj   *Object // insert, remove
	index int     // remove: which member
	comma bool    // insert: something follows
}

// NewPatch prepares changes to raw.
func NewPatch(raw []byte) *Patch { return &Patch{raw: raw} }

// Reset prepares changes to another message.
func (p *Patch) Reset(raw []byte) {
	clear(p.fixed[:p.n])
	p.raw, p.n, p.more = raw, 0, nil
}

// Empty says whether there are no changes.
func (p *Patch) Empty() bool { return p.n == 0 }

func (p *Patch) add(e edit) {
	if e.seq = p.n + len(p.more); p.n < len(p.fixed) {
		p.fixed[p.n] = e
		p.n++
		return
	}
	p.more = append(p.more, e)
}

// Replace puts with, which must be JSON without line breaks, in the place of one token. An absent span does nothing.
func (p *Patch) Replace(s Span, with []byte) {
	if s.Ok() {
		p.add(edit{do: replace, span: s, with: with})
	}
}

// Insert adds a member at the front of o, without looking whether there is one of that name. The value must be JSON
// without line breaks. An absent object does nothing.
func (p *Patch) Insert(o *Object, name string, value []byte) {
	if o.Ok() {
		p.add(edit{do: insert, span: Span{o.Start + 1, o.Start + 1}, name: name, with: value, obj: o})
	}
}

// Remove removes every member of that decoded name, with its comma.
func (p *Patch) Remove(o *Object, name string) {
	for i := range o.Members {
		if o.Members[i].is(p.raw, name) {
			p.add(edit{do: remove, obj: o, index: i})
		}
	}
}

// Set gives a member a new value, or adds it at the front when o has none of that name.
func (p *Patch) Set(o *Object, name string, value []byte) {
	if s := o.Get(p.raw, name); s.Ok() {
		p.Replace(s, value)
		return
	}
	p.Insert(o, name, value)
}

// Len is the exact length of what Append adds.
func (p *Patch) Len() int {
	var room [16]edit
	return p.length(p.resolve(room[:0]))
}

func (p *Patch) length(edits []edit) int {
	n := len(p.raw)
	for i := range edits {
		n += edits[i].size() - edits[i].span.len()
	}
	return n
}

// Append renders the changed message after dst.
func (p *Patch) Append(dst []byte) []byte {
	var room [16]edit
	edits := p.resolve(room[:0])
	dst = slices.Grow(dst, p.length(edits))
	done := 0
	for i := range edits {
		e := &edits[i]
		dst = append(dst, p.raw[done:e.span.Start]...)
		dst = e.append(dst)
		done = e.span.End
	}
	return append(dst, p.raw[done:]...)
}

// size is how many bytes the edit puts in.
func (e *edit) size() int {
	if e.do != insert {
		return len(e.with)
	}
	n := stringLen(e.name) + 1 + len(e.with)
	if e.comma {
		n++
	}
	return n
}

func (e *edit) append(dst []byte) []byte {
	if e.do == insert {
		dst = append(AppendString(dst, e.name), ':')
	}
	dst = append(dst, e.with...)
	if e.comma {
		dst = append(dst, ',')
	}
	return dst
}

// resolve turns the changes into disjoint ones in the order of the message.
func (p *Patch) resolve(list []edit) []edit {
	list = append(append(list, p.fixed[:p.n]...), p.more...)
	for i := range list {
		if list[i].do == remove {
			list[i].span = cut(list, list[i].obj, list[i].index)
		}
	}
	slices.SortFunc(list, inOrder)
	kept := list[:0]
	done := 0
	for _, e := range list {
		if e.span.Start >= done {
			kept = append(kept, e)
			done = e.span.End
		}
	}
	setCommas(kept)
	return kept
}

// inOrder sorts by place. At one place insertions come first, as they belong to the object around it, then what
// covers most, then the latest change, so that the others fall inside it and are dropped.
func inOrder(a, b edit) int {
	if a.span.Start != b.span.Start {
		return cmp.Compare(a.span.Start, b.span.Start)
	}
	switch {
	case a.do == insert && b.do == insert:
		return cmp.Compare(a.seq, b.seq)
	case a.do == insert:
		return -1
	case b.do == insert:
		return 1
	}
	return cmp.Or(cmp.Compare(b.span.End, a.span.End), cmp.Compare(b.seq, a.seq))
}

func removed(list []edit, o *Object, index int) bool {
	return slices.ContainsFunc(list, func(e edit) bool { return e.do == remove && e.obj.Span == o.Span && e.index == index })
}

// cut is the range to leave out for one removed member. It takes the comma before it, or, when no member before it
// stays, the comma after it.
func cut(list []edit, o *Object, index int) Span {
	m := o.Members
	for i := range index {
		if !removed(list, o, i) {
			return Span{m[index-1].Value.End, m[index].Value.End}
		}
	}
	if index+1 < len(m) {
		return Span{m[index].Key.Start, m[index+1].Key.Start}
	}
	return Span{m[index].Key.Start, m[index].Value.End}
}

// setCommas gives each inserted member its comma, unless nothing follows it in its object.
func setCommas(list []edit) {
	for i := range list {
		e := &list[i]
		if e.do != insert {
			continue
		}
		gone := 0
		for k := range list {
			if list[k].do == remove && list[k].obj.Span == e.obj.Span {
				gone++
			}
		}
		next := i+1 < len(list) && list[i+1].do == insert && list[i+1].span.Start == e.span.Start
		e.comma = next || gone < len(e.obj.Members)
	}
}

// stringLen is the length of what AppendString adds.
func stringLen(s string) int {
	var room [96]byte
	return len(AppendString(room[:0], s))
}
