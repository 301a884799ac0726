package upstream

import "github.com/mcp-proxy/mcp-proxy/internal/wire"

// foreign says whether a JSON object on a child's stdout is no message but, for example, a line of a log written as JSON.
// Such a line may well have an id or a method, and must neither end the call of that id nor be answered: it names no
// version of JSON-RPC, and has members that no message has or nothing that makes it one.
func foreign(object []byte) bool {
	o, ok := wire.ObjectAt(object, wire.Span{End: len(object)})
	if !ok {
		return false
	}
	kind := false
	for i := range o.Members {
		name, _ := wire.DecodeString(o.Members[i].Key.Of(object))
		switch name {
		case "jsonrpc":
			return false
		case "method", "result", "error":
			kind = true
		case "id", "params":
		default:
			return true
		}
	}
	return !kind
}

// isRPCError says whether an error has the shape that JSON-RPC gives it. Bodies of failed HTTP requests often have a
// member of that name that is none, such as the word of an OAuth error.
func isRPCError(f *wire.Frame) bool {
	o, ok := wire.ObjectAt(f.Raw, f.Error)
	code := o.Get(f.Raw, "code").Of(f.Raw)
	return ok && len(code) > 0 && (code[0] == '-' || code[0] >= '0' && code[0] <= '9')
}
