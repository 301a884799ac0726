package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// socketPatience is how long somebody who may still listen at a socket has to take a connection.
const socketPatience = time.Second

// unixListener is a listener at a unix socket, whose file goes with it.
type unixListener struct {
	*net.UnixListener
	path string
	made fs.FileInfo
	once sync.Once
}

// listenUnix listens at a unix socket with these permissions. The socket is made in a directory that nobody else can enter
// and put in its place when it is ready, so that there is no moment with other permissions. One that is left over is
// replaced, one that somebody still listens at is not.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if err := vacant(path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".mcp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	begun := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: begun, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it is somewhere else by then
	s := &unixListener{UnixListener: l, path: path}
	if err = os.Chmod(begun, mode); err == nil {
		s.made, err = os.Lstat(begun)
	}
	if err == nil {
		err = os.Rename(begun, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

var (
	errNoSocket = errors.New("there is something else than a socket at this path")
	errServed   = errors.New("somebody listens at this socket already")
)

// vacant says whether a socket may be put at a path.
func vacant(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errNoSocket
	}
	c, err := net.DialTimeout("unix", path, socketPatience)
	if err == nil {
		return errors.Join(errServed, c.Close())
	}
	if !refused(err) { // such as no permission to connect: it is not ours to replace
		return fmt.Errorf("the socket cannot be tried: %w", err)
	}
	return nil
}

// Addr implements net.Listener.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close implements net.Listener. A socket that another has put in our place is left alone: it is told by its inode, which is
// ours for certain only until we are closed, so a second Close looks at no file.
func (l *unixListener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			_ = os.Remove(l.path)
		}
	})
	return l.UnixListener.Close()
}
