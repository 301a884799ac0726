package wire

// Kind is what a message is.
type Kind uint8

// The kinds of messages.
const (
	KindRequest Kind = iota + 1
	KindNotification
	KindResponse
	KindError // a response with an error; its id may be absent, null or unreadable
)

// Side says where a message comes from, and so how strictly it is read.
type Side uint8

// The sides. What clients send is refused when it could be read in two ways; servers are forgiven what does no harm.
const (
	Downstream Side = iota
	Upstream
)

// The bounds that hold when [Limits] names none.
const (
	DefaultMaxDepth   = 256
	DefaultMaxMembers = 4096
)

// Limits bounds a message. Zero means the default.
type Limits struct {
	MaxDepth   int // nested objects and arrays, the message itself included
	MaxMembers int // in each object whose members are read
}

// Frame is one scanned message. It refers to itself and must not be copied; a frame that is no longer written to may
// be read by several goroutines.
type Frame struct {
	Raw      []byte // the whole message, without line breaks and without blanks around it
	Kind     Kind
	ID       Span   // raw token including quotes; null only for KindError
	Method   string // decoded
	Top      Object // the envelope
	Params   Span   // of requests and notifications
	Result   Span
	Error    Span
	Body     Object // members of params, result or error when that is an object
	Meta     Object // members of the body's _meta when that is an object
	Repaired bool   // invalid UTF-8 was replaced by U+FFFD
	Amended  bool   // the envelope was put right: a version added, members removed that were null

	_    noCopy
	top  [6]Member
	body [8]Member
	meta [6]Member
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
