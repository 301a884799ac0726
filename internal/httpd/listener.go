package httpd

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// listener knows by which names one of our addresses may be called, and from which web pages. It never changes.
type listener struct {
	loopback bool
	// restrict is set where only the names in hosts are served. On loopback that is always so: a page whose DNS name
	// was turned to 127.0.0.1 after it was loaded (DNS rebinding) is of the same origin as we are, and only its Host
	// gives it away.
	restrict bool
	hosts    map[hostPort]bool
	origins  map[string]bool
	anyPage  bool // every origin may call
	// authed is set where callers need a credential, which a rebound page has not.
	authed bool
}

// hostPort is a name in lower case and a port; an empty port stands for any.
type hostPort struct{ name, port string }

func newListener(addr string, p config.Proxy, authed bool) (*listener, error) {
	_, socket := config.SocketPath(addr)
	if socket {
		addr = "localhost:0"
	}
	own, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no host:port: %w", addr, err)
	}
	own = strings.ToLower(own)
	l := &listener{
		loopback: isLoopback(own),
		hosts:    map[hostPort]bool{},
		origins:  map[string]bool{},
		authed:   authed,
	}
	// No web page reaches a unix socket, and clients call it by whatever name.
	l.restrict = l.loopback && !socket || len(p.AllowedHosts) > 0
	if ip, err := netip.ParseAddr(own); own != "" && (err != nil || !ip.IsUnspecified()) {
		l.hosts[hostPort{name: own}] = true
	}
	for _, h := range p.AllowedHosts {
		l.hosts[splitHost(h)] = true
	}
	for _, o := range p.AllowedOrigins {
		l.origins[normalOrigin(o)] = true
		l.anyPage = l.anyPage || o == "*"
	}
	l.addPublicURL(p.PublicURL)
	return l, nil
}

// addPublicURL allows the address that the operator gives out to clients.
func (l *listener) addPublicURL(s string) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return
	}
	l.hosts[splitHost(u.Host)] = true
	l.origins[normalOrigin(u.Scheme+"://"+u.Host)] = true
}

// hostAllowed judges a Host header.
func (l *listener) hostAllowed(host string) bool {
	if !l.restrict {
		return true
	}
	h := splitHost(host)
	if l.loopback && isLoopback(h.name) {
		return true
	}
	return h.name != "" && (l.hosts[hostPort{name: h.name}] || l.hosts[h])
}

// originAllowed judges a present Origin header: listed, or a page on this machine while we are on loopback, or of the
// same origin as Host, where Host can be trusted.
func (l *listener) originAllowed(values []string, host string) bool {
	if len(values) != 1 {
		return false
	}
	if l.anyPage || l.origins[strings.ToLower(values[0])] {
		return true
	}
	o, ok := parseOrigin(values[0])
	if !ok {
		return false
	}
	if l.loopback && isLoopback(o.name) {
		return true
	}
	return l.sameOrigin(values[0], host) && (l.restrict || l.authed || isIP(o.name))
}

// sameOrigin compares an Origin with a Host. The scheme is left out: TLS may end in front of us.
func (l *listener) sameOrigin(value, host string) bool {
	o, ok := parseOrigin(value)
	if !ok {
		return false
	}
	h := splitHost(host)
	if h.port == "" {
		h.port = defaultPort(o.scheme)
	}
	return h == o.hostPort
}

// origin is a web origin; its port is never empty.
type origin struct {
	scheme string
	hostPort
}

// parseOrigin reads the origin of a web page. "null", other schemes and anything after the port are no such thing.
func parseOrigin(s string) (origin, bool) {
	scheme, rest, found := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	port := defaultPort(scheme)
	if !found || port == "" || rest == "" || strings.ContainsAny(rest, `/?#@\, `) {
		return origin{}, false
	}
	h := splitHost(rest)
	if h.port == "" {
		h.port = port
	}
	return origin{scheme, h}, h.name != ""
}

// normalOrigin writes a configured origin the way browsers do: lower case, no slash, no default port.
func normalOrigin(s string) string {
	s = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "/")
	if o, ok := parseOrigin(s); ok && o.port == defaultPort(o.scheme) {
		return strings.TrimSuffix(s, ":"+o.port)
	}
	return s
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// splitHost takes "name", "name:port", "[v6]", "[v6]:port" or a bare IPv6 address apart.
func splitHost(s string) hostPort {
	name, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') && (s[0] == '[' || i == strings.IndexByte(s, ':')) {
		name, port = s[:i], s[i+1:]
	}
	if len(name) > 1 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	return hostPort{strings.ToLower(strings.TrimSuffix(name, ".")), port}
}

func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, ok := parseIP(name)
	return ok && ip.Unmap().IsLoopback()
}

func isIP(name string) bool {
	_, ok := parseIP(name)
	return ok
}

// parseIP looks at the text first: an error of netip.ParseAddr costs an allocation for every DNS name.
func parseIP(name string) (netip.Addr, bool) {
	if name == "" || !strings.Contains(name, ":") && (name[0] < '0' || name[0] > '9') {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(name)
	return ip, err == nil
}
