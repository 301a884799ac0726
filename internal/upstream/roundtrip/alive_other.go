//go:build !unix

package roundtrip

import "net"

// alive cannot look on this system; a connection that has died costs the call that finds it out.
func alive(net.Conn) bool { return true }
