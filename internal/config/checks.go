package config

import (
	"net/url"
	"strings"
	"unicode"
)

func notEmpty(s string) string {
	if s == "" {
		return "is empty"
	}
	return ""
}

func isVariableName(s string) string {
	if s == "" || strings.ContainsAny(s, "=\x00 ") {
		return "is not the name of a variable"
	}
	return ""
}

// isHTTPURL never repeats the address: it may carry a password.
func isHTTPURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not an address; write for example http://127.0.0.1:9000/mcp"
	case strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		return "holds a blank or a line break"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Hostname() == "":
		return "names no host"
	case u.Fragment != "":
		return "has a fragment (#), which a server never sees"
	}
	return ""
}

// isMessageURL is for an address without a credential, which may be relative.
func isMessageURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || s == "" || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		return `is not an address; write for example "/gateway/messages/"`
	case u.Host != "" && u.Scheme != "http" && u.Scheme != "https" || u.Host == "" && u.Scheme != "":
		return "must be a path, or begin with http:// or https://"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "must have neither a user nor a query nor a fragment"
	}
	return ""
}

// isPublicURL is for the address that clients reach us under.
func isPublicURL(s string) string {
	if s == "" {
		return ""
	}
	if complaint := isHTTPURL(s); complaint != "" {
		return complaint
	}
	if u, _ := url.Parse(s); u.User != nil || u.RawQuery != "" {
		return "must have neither a user nor a query"
	}
	return ""
}

func isOrigin(s string) string {
	if s == "*" || s == "null" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return `is not an origin; write for example "https://app.example.com", without a path`
	}
	return ""
}

func isHost(s string) string {
	if s == "" || strings.ContainsAny(s, "/@ ") {
		return `is not a host; write for example "mcp.example.com", without scheme and path`
	}
	return ""
}

func isHeaderName(s string) string {
	if !isToken(s) {
		return "is not the name of a header"
	}
	return ""
}

// isToken is the token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func isCredential(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case strings.ContainsAny(s, "\r\n\x00"):
		return "holds a line break"
	}
	return ""
}

func isTemplate(s string) string {
	if !strings.Contains(s, "{tool}") {
		return "must contain {tool}"
	}
	rest := strings.NewReplacer("{tool}", "", "{server}", "").Replace(s)
	if strings.ContainsAny(rest, "{}") {
		return "may contain only {server} and {tool} in braces"
	}
	return ""
}
