package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// The reasons why a listen address is refused.
var (
	// ErrListenAddress: the address is not host:port.
	ErrListenAddress = errors.New("not a listen address")
	// ErrListenOpen: everybody who reaches the address could use every server.
	ErrListenOpen = errors.New("listening for other machines without auth")
)

// CheckListen refuses an address that is malformed, and one that other machines can reach while auth lets everybody in
// and the configuration does not say in words that this is meant. An empty host is every interface.
func CheckListen(addr string, auth Auth) error {
	host, err := splitListen(addr)
	if err != nil {
		return err
	}
	if isLoopback(host) || auth.Mode == AuthTokens || auth.Mode == AuthNone && auth.Explicit {
		return nil
	}
	return fmt.Errorf(`%w: %q can be reached from outside this machine and proxy.auth is not set; give auth tokens ("auth": {"tokens": [...]}), `+
		`or say "auth": {"mode": "none"} if everybody may use it, or listen on 127.0.0.1`, ErrListenOpen, addr)
}

// SocketPath gives the path of a listen address that is a unix socket.
func SocketPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, "unix:") }

// maxSocketPath leaves room for the name under which a socket is made; systems allow about 104 bytes.
const maxSocketPath = 90

// splitListen gives the host. A unix socket is on this machine, so its host is localhost.
func splitListen(addr string) (host string, err error) {
	if path, ok := SocketPath(addr); ok {
		switch {
		case path == "" || strings.HasPrefix(path, "@") || strings.ContainsRune(path, 0):
			return "", fmt.Errorf(`%w: %q; a unix socket has a path, for example "unix:/run/mcp-proxy.sock"`, ErrListenAddress, addr)
		case len(path) > maxSocketPath:
			return "", fmt.Errorf("%w: %q; the path of a unix socket has at most %d bytes", ErrListenAddress, addr, maxSocketPath)
		}
		return "localhost", nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf(`%w: %q; write host:port, for example "127.0.0.1:8080"`, ErrListenAddress, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%w: %q; the port must be a number from 0 to 65535", ErrListenAddress, addr)
	} else if n == 0 && port != "0" {
		return "", fmt.Errorf("%w: %q; the port must be a plain number", ErrListenAddress, addr)
	}
	if strings.ContainsAny(host, "/@ ") {
		return "", fmt.Errorf("%w: %q; the host may hold neither a scheme nor a path", ErrListenAddress, addr)
	}
	return host, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// isEvery is true for the hosts that stand for every interface.
func isEvery(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

// PointsAtSelf is true when a request to address would arrive at our own listener: the same port, and a host that the
// listener serves. Names are not resolved, apart from localhost and the name of this machine.
func PointsAtSelf(address, listen string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" || portOf(u) != port {
		return false
	}
	target := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	switch {
	case target == "":
		return false
	case strings.EqualFold(target, host), isEvery(target) && (isLoopback(host) || isEvery(host)):
		return true
	case isLoopback(host):
		return isLoopback(target)
	case isEvery(host):
		return isLoopback(target) || isOurName(target)
	}
	return sameIP(target, host)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	}
	return "80"
}

func sameIP(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Unmap() == y.Unmap()
}

// isOurName knows the name of this machine and the addresses of its interfaces.
func isOurName(host string) bool {
	if name, err := os.Hostname(); err == nil && strings.EqualFold(name, host) {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && sameIP(n.IP.String(), host) {
			return true
		}
	}
	return false
}
