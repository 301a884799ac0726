//go:build !unix

package app

import (
	"errors"
	"net"
)

// refused says that nobody listens there: the connection failed, and not for want of time.
func refused(err error) bool {
	var ne net.Error
	return !errors.As(err, &ne) || !ne.Timeout()
}
