package httpd

import (
	"net/http"
	"strings"
)

// maxParamHeaders bounds how many mcp-param-* headers one preflight may ask for.
const maxParamHeaders = 64

// corsHeaders are the values that do not change between requests. They are shared by all responses: nobody may write
// into these slices (appending to them is harmless, they have no spare room).
type corsHeaders struct {
	allowed                                    string
	methods, maxAge, expose, vary, varyRequest []string
}

func newCORSHeaders(authHeader string) corsHeaders {
	allowed := "authorization, content-type, accept, mcp-protocol-version, mcp-session-id, last-event-id, mcp-method, mcp-name"
	if h := strings.ToLower(authHeader); h != "authorization" {
		allowed += ", " + h
	}
	return corsHeaders{
		allowed:     allowed,
		methods:     []string{"GET, POST, DELETE, OPTIONS"},
		maxAge:      []string{"3600"},
		expose:      []string{"Mcp-Session-Id, WWW-Authenticate"},
		vary:        []string{"Origin"},
		varyRequest: []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"},
	}
}

// crossOrigin lets the web pages whose Origin admit has let pass read our answers, and answers their preflights. It
// comes before authentication, because a preflight never carries a credential.
func (d *Door) crossOrigin(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header["Origin"]
		if len(origin) == 0 {
			next(w, r)
			return
		}
		h := w.Header()
		h["Access-Control-Allow-Origin"] = origin[:1:1]
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			d.cors.preflight(h, r.Header["Access-Control-Request-Headers"])
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h["Vary"] = d.cors.vary
		h["Access-Control-Expose-Headers"] = d.cors.expose
		next(w, r)
	}
}

func (c *corsHeaders) preflight(h http.Header, requested []string) {
	h["Access-Control-Allow-Methods"] = c.methods
	h["Access-Control-Max-Age"] = c.maxAge
	h["Vary"] = c.varyRequest
	h.Set("Access-Control-Allow-Headers", c.allowed+paramHeaders(requested))
}

// paramHeaders picks the headers that mirror tool arguments, whose names only the tools know, out of what a preflight
// asks for.
func paramHeaders(requested []string) string {
	var b strings.Builder
	left := maxParamHeaders
	for _, line := range requested {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if left > 0 && strings.HasPrefix(name, "mcp-param-") && isToken(name) {
				b.WriteString(", " + name)
				left--
			}
		}
	}
	return b.String()
}

// isToken tells whether s, in lower case, can be the name of a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
