package proxy

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Results that are kept are resources of the proxy's own: stashScheme, a random name, and for pages after the first where
// the page begins. They stand in no list.
const (
	stashScheme = "mcp-proxy-result://"
	stashOffset = "?offset="
	// metaNextPage is the member of _meta that names the next page for programs.
	metaNextPage = "io.github.mcp-proxy/next"
)

func (e *stashed) uri(offset int) string {
	if offset == 0 {
		return stashScheme + e.token
	}
	return stashScheme + e.token + stashOffset + strconv.Itoa(offset)
}

// age is how long a result is kept.
func (s *stash) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bounds.MaxAge
}

// readKept answers a read of a result that is kept for this caller; false for any other read, which may be of another
// proxy behind this one.
func (c *call) readKept(kind Kind, key wire.Span) (Answer, bool) {
	if kind != Resource || c.method != "resources/read" {
		return Answer{}, false
	}
	uri, _ := wire.DecodeString(key.Of(c.req.Frame.Raw))
	rest, ok := strings.CutPrefix(uri, stashScheme)
	if !ok {
		return Answer{}, false
	}
	token, from, paged := strings.Cut(rest, stashOffset)
	offset := 0
	if paged {
		var err error
		if offset, err = strconv.Atoi(from); err != nil || strconv.Itoa(offset) != from {
			return Answer{}, false
		}
	}
	e := c.p.stash.get(strings.TrimSuffix(token, "/"), c.req.Caller)
	if e == nil || offset < 0 || offset >= len(e.body) || !e.blob && !utf8.RuneStart(e.body[offset]) {
		return Answer{}, false
	}
	result := e.read(uri, offset)
	if c.req.Caller.Era == wire.Modern {
		result = append(result[:len(result)-1], `,"ttlMs":0,"cacheScope":"private"}`...)
	}
	return Result(c.rawID(), c.p.eraResult(result, c.req.Caller.Era)), true
}

// pageOverhead is what a page takes beside what it holds.
const pageOverhead = 640

// read makes the page that begins at an offset. A page that is not the last is followed by where the next one is, in a
// text of its own for models and in _meta for programs.
func (e *stashed) read(uri string, offset int) []byte {
	rest := e.body[offset:]
	room := max(e.page-pageOverhead, 256)
	b := wire.AppendString([]byte(`{"contents":[{"uri":`), uri)
	b = wire.AppendString(append(b, `,"mimeType":`...), e.mime)
	var n int
	if e.blob {
		n = min(len(rest), room/4*3)
		b = append(b, `,"blob":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, []byte(rest[:n])), '"')
	} else {
		n = fitting(rest, room)
		b = wire.AppendString(append(b, `,"text":`...), rest[:n])
	}
	if n == len(rest) {
		return append(b, "}]}"...)
	}
	next := e.uri(offset + n)
	b = wire.AppendString(append(b, `,"_meta":{"`+metaNextPage+`":`...), next)
	b = wire.AppendString(append(b, `}},{"uri":`...), next)
	note := fmt.Sprintf("[Bytes %d to %d of %d. The next page is the resource %s.]", offset, offset+n, len(e.body), next)
	b = wire.AppendString(append(b, `,"mimeType":"text/plain","text":`...), note)
	return append(b, "}]}"...)
}
