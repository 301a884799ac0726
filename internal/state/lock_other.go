//go:build !unix

package state

import "os"

// lock does nothing on systems without flock.
func lock(*os.File) error { return nil }
