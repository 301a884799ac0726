// Package state keeps what has to outlive a restart: small JSON files in a directory that one process has for itself. It
// is a leaf. Without a directory everything is kept in memory.
package state

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// ErrLocked means that another process has the directory.
var ErrLocked = errors.New("another process uses this state directory")

// Store is one state directory, locked for this process. It is safe for concurrent use.
type Store struct {
	dir  string // empty: memory only
	lock *os.File

	mu   sync.Mutex
	eras map[string]string
}

const (
	erasFile    = "eras.json"
	keyFile     = "session-key.json"
	revokedFile = "sessions-ended.json"
)

// Open makes the directory if need be and locks it. An empty dir keeps everything in memory.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, eras: map[string]string{}}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	s.lock = f
	// What cannot be read is learnt again.
	if b, err := os.ReadFile(filepath.Join(dir, erasFile)); err == nil {
		_ = json.Unmarshal(b, &s.eras)
	}
	if s.eras == nil {
		s.eras = map[string]string{}
	}
	return s, nil
}

// Close gives the directory free.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// Era gives the era that an upstream of this definition was found to speak.
func (s *Store) Era(definition string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.eras[definition]
	return e, ok
}

// maxEras bounds how many definitions are remembered.
const maxEras = 10000

// SetEra remembers an era. That it could not be written costs a probe after the next start, no more.
func (s *Store) SetEra(definition, era string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.eras) >= maxEras {
		clear(s.eras)
	}
	s.eras[definition] = era
	if s.dir != "" {
		_ = s.write(erasFile, s.eras)
	}
}

// keyBytes is the length of a key that is made here.
const keyBytes = 32

// SessionKey gives the secret that session ids are sealed with, and makes it where there is none or it cannot be read.
// The key is good even where the error says that it could not be kept.
func (s *Store) SessionKey() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var key []byte
	if s.dir != "" {
		b, err := os.ReadFile(filepath.Join(s.dir, keyFile))
		if err == nil && json.Unmarshal(b, &key) == nil && len(key) == keyBytes {
			return key, nil
		}
	}
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	if s.dir == "" {
		return key, nil
	}
	if err := s.write(keyFile, key); err != nil {
		return key, fmt.Errorf("keeping the key of sessions: %w", err)
	}
	return key, nil
}

// Revoked gives the sessions that were ended before their time, each with its expiry in Unix seconds.
func (s *Store) Revoked() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	if s.dir == "" {
		return out
	}
	// What cannot be read is forgotten: then an ended session lives until its expiry, if its client still wants it.
	b, err := os.ReadFile(filepath.Join(s.dir, revokedFile))
	if err != nil || json.Unmarshal(b, &out) != nil || out == nil {
		return map[string]int64{}
	}
	return out
}

// SetRevoked keeps what Revoked gives after the next start.
func (s *Store) SetRevoked(revoked map[string]int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	return s.write(revokedFile, revoked)
}

// write keeps a value as JSON.
func (s *Store) write(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.replace(name, b)
}

// replace replaces a file as a whole: a crash leaves the old one.
func (s *Store) replace(name string, b []byte) error {
	return replaceFile(filepath.Join(s.dir, name), b)
}

func replaceFile(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
