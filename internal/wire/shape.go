package wire

import "math"

// envelope is where the members of a JSON-RPC message stand.
type envelope struct{ version, id, method, params, result, err Span }

func (f *Frame) envelope() envelope {
	var e envelope
	for i := range f.Top.Members {
		m := &f.Top.Members[i]
		name := m.bare(f.Raw)
		if m.Name != "" {
			name = []byte(m.Name)
		}
		switch string(name) {
		case "jsonrpc":
			e.version = m.Value
		case "id":
			e.id = m.Value
		case "method":
			e.method = m.Value
		case "params":
			e.params = m.Value
		case "result":
			e.result = m.Value
		case "error":
			e.err = m.Value
		}
	}
	return e
}

// safeID is the id that an error answer to an unusable message may carry: the only one in it, and a valid one.
func (f *Frame) safeID() []byte {
	var id []byte
	for i := range f.Top.Members {
		if m := &f.Top.Members[i]; m.is(f.Raw, "id") {
			if id != nil {
				return nil
			}
			id = m.Value.Of(f.Raw)
		}
	}
	if id == nil || !ValidID(id) {
		return nil
	}
	return id
}

func (f *Frame) isNull(s Span) bool { return s.Ok() && f.Raw[s.Start] == 'n' }

func (f *Frame) isVersion(s Span) bool {
	tok := s.Of(f.Raw)
	if string(tok) == `"2.0"` {
		return true
	}
	v, ok := DecodeString(tok)
	return ok && v == "2.0"
}

// readStrict decides what a message of a client is. Whatever two readers could understand differently is refused.
func (f *Frame) readStrict() *ParseError {
	if err := envelopeNames.checkStrict(f.Raw, &f.Top, "message"); err != nil {
		return err
	}
	e := f.envelope()
	if !f.isVersion(e.version) {
		return newParseError(ReasonMissingVersion, e.version.Start, `jsonrpc: it must be there and be "2.0"`)
	}
	if err := f.classify(e, Downstream); err != nil {
		return err
	}
	place, set := f.bodyNames()
	if err := set.checkStrict(f.Raw, &f.Body, place); err != nil || !f.Meta.Ok() {
		return err
	}
	return metaNames.checkStrict(f.Raw, &f.Meta, place+"._meta")
}

// readLenient decides what a message of a server is. Members that occur twice matter only where the proxy reads them.
func (f *Frame) readLenient() *ParseError {
	if err := envelopeNames.checkExact(f.Raw, &f.Top, "message"); err != nil {
		return err
	}
	if err := f.classify(f.envelope(), Upstream); err != nil {
		return err
	}
	place, set := f.bodyNames()
	if err := set.checkExact(f.Raw, &f.Body, place); err != nil || !f.Meta.Ok() {
		return err
	}
	return metaNames.checkExact(f.Raw, &f.Meta, place+"._meta")
}

// bodyNames is what Body is called, and the names that matter in it.
func (f *Frame) bodyNames() (string, *names) {
	switch f.Kind {
	case KindResponse:
		return "result", resultNames
	case KindError:
		return "error", errorNames
	}
	return "params", paramsNames
}

// classify sets Kind and the spans that go with it.
func (f *Frame) classify(e envelope, side Side) *ParseError {
	switch {
	case e.result.Ok() && e.err.Ok():
		return newParseError(ReasonInvalidShape, e.err.Start, "message: it has both result and error; send one of them")
	case e.method.Ok() && (e.result.Ok() || e.err.Ok()):
		return newParseError(ReasonInvalidShape, e.method.Start, "message: it has a method and a result or error; send a request or a response")
	case e.method.Ok():
		return f.asRequest(e, side)
	case e.result.Ok() || e.err.Ok():
		return f.asResponse(e, side)
	}
	return newParseError(ReasonInvalidShape, 0, "message: it has no method, result or error; send a request, a notification or a response")
}

func (f *Frame) asRequest(e envelope, side Side) *ParseError {
	var ok bool
	if f.Method, ok = methodName(e.method.Of(f.Raw)); !ok {
		return newParseError(ReasonInvalidMethod, e.method.Start, "method: it must be a string that is not empty")
	}
	f.Kind = KindNotification
	if e.id.Ok() {
		if f.Kind = KindRequest; !ValidID(e.id.Of(f.Raw)) {
			return invalidID(e.id)
		}
	}
	if e.params.Ok() && side == Downstream {
		if c := f.Raw[e.params.Start]; c != '{' && c != '[' {
			return newParseError(ReasonInvalidShape, e.params.Start, "params: it must be an object or an array; leave it out when there is nothing to say")
		}
	}
	f.ID, f.Params = e.id, e.params
	return nil
}

func (f *Frame) asResponse(e envelope, side Side) *ParseError {
	f.Kind, f.ID, f.Result, f.Error = KindResponse, e.id, e.result, e.err
	if e.err.Ok() {
		f.Kind = KindError
	}
	if side == Downstream {
		if e.params.Ok() {
			return newParseError(ReasonInvalidShape, e.params.Start, "message: a response has no params; leave them out")
		}
		if e.err.Ok() && f.Raw[e.err.Start] != '{' {
			return newParseError(ReasonInvalidShape, e.err.Start, "error: it must be an object with code and message")
		}
	}
	if (side == Downstream || f.Kind == KindResponse) && !ValidID(e.id.Of(f.Raw)) {
		return invalidID(e.id)
	}
	f.findBody(e.result, e.err)
	return nil
}

func invalidID(at Span) *ParseError {
	return newParseError(ReasonInvalidID, at.Start, "id: it must be a string or an integer written without exponent")
}

// findBody makes Body the members of the response when those of a stray params were noted instead.
func (f *Frame) findBody(result, err Span) {
	want := result
	if err.Ok() {
		want = err
	}
	if f.Body.Start == want.Start {
		return
	}
	f.Body.empty()
	f.Meta.empty()
	if f.Raw[want.Start] != '{' {
		return
	}
	s := scanner{raw: f.Raw, maxDepth: depthCeiling, maxMembers: math.MaxInt, frame: f}
	s.object(want.Start, 2, &f.Body)
	f.Body.Span = want
}

// amend is the message of a server with its envelope put right, nil when nothing is wrong with it. A missing or odd
// version is set, and members are removed that are null because a serializer writes out all it knows: a client that
// checks its input would not accept them.
func (f *Frame) amend() []byte {
	e := f.envelope()
	nulls := f.isNull(e.id) || f.isNull(e.method) || f.isNull(e.params) || f.isNull(e.result) || f.isNull(e.err)
	if len(f.Top.Members) == 0 || f.isVersion(e.version) && !nulls {
		return nil
	}
	p := NewPatch(f.Raw)
	if !e.version.Ok() {
		p.Insert(&f.Top, "jsonrpc", []byte(`"2.0"`))
	} else if !f.isVersion(e.version) {
		p.Replace(e.version, []byte(`"2.0"`))
	}
	f.removeNulls(p, e)
	if p.Empty() {
		return nil
	}
	return p.Append(nil)
}

// removeNulls removes the members of the envelope whose null says nothing.
func (f *Frame) removeNulls(p *Patch, e envelope) {
	method := e.method.Ok() && !f.isNull(e.method)
	remove := func(name string, value Span, idle bool) {
		if idle && f.isNull(value) {
			p.Remove(&f.Top, name)
		}
	}
	remove("id", e.id, method)
	remove("method", e.method, true)
	remove("params", e.params, true)
	remove("result", e.result, method || e.err.Ok() && !f.isNull(e.err))
	remove("error", e.err, method || e.result.Ok())
}
