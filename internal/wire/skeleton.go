package wire

import (
	"errors"
	"io"
	"time"
)

var errSkeleton = errors.New("not built yet")

func Parse(raw []byte, side Side, lim Limits) (*Frame, error)         { return nil, errSkeleton }
func ParseInto(f *Frame, raw []byte, side Side, lim Limits) error     { return errSkeleton }
func SplitValues(line []byte, max int) (values [][]byte, rest []byte) { return nil, line }
func IsBatch(raw []byte) bool                                         { return false }
func SplitBatch(raw []byte, maxItems int) ([][]byte, error)           { return nil, errSkeleton }
func Elements(raw []byte, arr Span) []Span                            { return nil }
func ObjectAt(raw []byte, s Span) (Object, bool)                      { return Object{}, false }
func DecodeString(tok []byte) (string, bool)                          { return "", false }
func AppendString(dst []byte, s string) []byte                        { return dst }
func IDKey(tok []byte) string                                         { return string(tok) }
func ValidID(tok []byte) bool                                         { return false }
func AppendUpstreamID(dst []byte, n uint64) []byte                    { return dst }
func ParseUpstreamID(tok []byte) (uint64, bool)                       { return 0, false }

type Patch struct{ raw []byte }

func NewPatch(raw []byte) *Patch                             { return &Patch{raw: raw} }
func (p *Patch) Reset(raw []byte)                            { p.raw = raw }
func (p *Patch) Replace(s Span, with []byte)                 {}
func (p *Patch) Insert(o *Object, name string, value []byte) {}
func (p *Patch) Remove(o *Object, name string)               {}
func (p *Patch) Append(dst []byte) []byte                    { return append(dst, p.raw...) }
func (p *Patch) Len() int                                    { return len(p.raw) }

var ErrEventTooLarge = errors.New("event stream: event too large")

type Event struct {
	ID      string
	HasID   bool
	Name    string
	Data    []byte
	HasData bool
	Retry   time.Duration
}

type EventReader struct{}

func NewEventReader(r io.Reader, maxEvent int) *EventReader { return &EventReader{} }
func (*EventReader) Next() (Event, error)                   { return Event{}, errSkeleton }

func AppendEvent(dst []byte, name, id string, data []byte) []byte { return dst }
func AppendComment(dst []byte, text string) []byte                { return dst }
