package wire

import "strconv"

// The reasons for which a message is refused; a closed set, fit for a metric label.
const (
	ReasonInvalidJSON     = "invalid_json"
	ReasonInvalidUTF8     = "invalid_utf8"
	ReasonTooDeep         = "too_deep"
	ReasonTooManyMembers  = "too_many_members"
	ReasonDuplicateMember = "duplicate_member"
	ReasonMiscasedMember  = "miscased_member"
	ReasonInvalidID       = "invalid_id"
	ReasonInvalidMethod   = "invalid_method"
	ReasonNotAnObject     = "not_an_object"
	ReasonMissingVersion  = "missing_version"
	ReasonInvalidShape    = "invalid_shape"
)

// Reasons lists every value that [ParseError.Reason] can have.
func Reasons() []string {
	return []string{
		ReasonInvalidJSON, ReasonInvalidUTF8, ReasonTooDeep, ReasonTooManyMembers, ReasonDuplicateMember,
		ReasonMiscasedMember, ReasonInvalidID, ReasonInvalidMethod, ReasonNotAnObject, ReasonMissingVersion,
		ReasonInvalidShape,
	}
}

// ParseError says why a message was refused.
type ParseError struct {
	Code   int    // CodeParse for what is not JSON, CodeInvalidRequest for what is not a JSON-RPC message
	Reason string // one of the Reason constants
	Offset int    // byte at which the trouble begins, counted after a byte order mark and leading blanks
	ID     []byte // raw id token for the error answer; nil when none could be read or it is not a valid id; shares the memory of the message
	msg    string
}

// Error names the place and the remedy.
func (e *ParseError) Error() string { return e.msg }

// codeOf is the JSON-RPC code that belongs to a reason.
func codeOf(reason string) int {
	switch reason {
	case ReasonInvalidJSON, ReasonInvalidUTF8, ReasonTooDeep:
		return CodeParse
	}
	return CodeInvalidRequest
}

func newParseError(reason string, offset int, msg string) *ParseError {
	return &ParseError{Code: codeOf(reason), Reason: reason, Offset: offset, msg: msg}
}

// quoteShort quotes text that came from outside for an error message, cut to a length that fits one.
func quoteShort(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.QuoteToASCII(text)
}
