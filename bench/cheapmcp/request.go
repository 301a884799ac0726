package cheapmcp

import "bytes"

// request is what is read of one incoming message. All slices lie in the
// message itself.
type request struct {
	id     []byte // the bytes of the id as sent; empty for a notification
	method []byte // empty for an answer
	name   []byte // params.name
	// version is params._meta's protocol version, and with initialize the
	// version asked for.
	version []byte
	modern  bool // params._meta carries a protocol version
}

// parse reads one message; false when it is not an object.
func parse(message []byte) (request, bool) {
	var req request
	var params []byte
	top := membersOf(message)
	for {
		name, value, ok := top.next()
		if !ok {
			break
		}
		switch string(name) {
		case "id":
			req.id = value
		case "method":
			req.method = unquote(value)
		case "params":
			params = value
		}
	}
	if top.failed {
		return request{}, false
	}
	if len(params) > 0 {
		req.readParams(params)
	}
	return req, true
}

func (r *request) readParams(params []byte) {
	in := membersOf(params)
	for {
		name, value, ok := in.next()
		if !ok {
			return
		}
		switch string(name) {
		case "name":
			r.name = unquote(value)
		case "protocolVersion":
			if !r.modern {
				r.version = unquote(value)
			}
		case "_meta":
			r.readMeta(value)
		}
	}
}

func (r *request) readMeta(meta []byte) {
	in := membersOf(meta)
	for {
		name, value, ok := in.next()
		if !ok {
			return
		}
		if string(name) == metaProtocolVersion {
			r.modern = true
			r.version = unquote(value)
		}
	}
}

// unquote strips the quotes of a JSON string. None of the names and methods
// that are compared with it need an escape.
func unquote(value []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimPrefix(value, []byte{'"'}), []byte{'"'})
}
