package allow

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// readings are what servers may take a URI for that do not read it as RFC 3986 says: as browsers do, which drop white space
// and take a backslash for a slash, without its query, or with all that is behind the scheme for one path. climbs says that
// it has a segment "..", in whatever spelling.
func readings(uri string) (forms []string, climbs bool) {
	scheme, rest, ok := strings.Cut(strings.Map(visible, strings.TrimSpace(uri)), ":")
	if !ok {
		return nil, false
	}
	scheme, rest = strings.ToLower(scheme), strings.ReplaceAll(unescape(rest), `\`, "/")
	within, _, _ := strings.Cut(rest, "#")
	bare, query, asks := strings.Cut(within, "?")
	full := place(scheme, bare)
	forms = []string{full, place(scheme, rest), segments(scheme, rest)}
	if asks {
		forms = append(forms, full+"?"+query)
	}
	isEnd := func(r rune) bool { return r == '/' || r == '?' || r == '#' }
	return forms, slices.Contains(strings.FieldsFunc(rest, isEnd), "..")
}

// visible drops the characters that browsers drop (WHATWG URL, 4.4).
func visible(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// place is the plain form of what is behind a scheme: an authority and a path.
func place(scheme, rest string) string {
	host := ""
	switch after, ok := strings.CutPrefix(rest, "//"); {
	case ok:
		host, rest, _ = strings.Cut(after, "/")
	case !strings.HasPrefix(rest, "/") && scheme != "file":
		return scheme + ":" + rest
	}
	host = strings.TrimSuffix(strings.ToLower(host[strings.LastIndexByte(host, '@')+1:]), ":")
	switch scheme {
	case "file":
		host = "" // many read the path alone; RFC 8089, 2, has localhost
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host + cleaned(rest)
}

// segments is the form of a URI whose authority is but the first segment of its path.
func segments(scheme, rest string) string {
	after := strings.TrimPrefix(rest, "//")
	if strings.HasPrefix(after, "/") {
		return scheme + "://" + cleaned(after)
	}
	return scheme + "://" + cleaned(after)[1:]
}

// cleaned is a path from the root without the segments that lead nowhere.
func cleaned(p string) string {
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// unescape takes percent signs off where they stand for something, and leaves the others.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
