package state

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	catalogPrefix = "catalog-"
	catalogSuffix = ".json"
	// maxCatalogBytes bounds one catalog, maxCatalogs how many are kept; the one that was written longest ago goes first.
	maxCatalogBytes = 16 << 20
	maxCatalogs     = 1000
)

// ErrCatalogTooLong means that a catalog is not kept because of its size.
var ErrCatalogTooLong = errors.New("the catalog is too long to be kept")

// Catalog gives what was last kept under this key; nil where there is nothing. The caller must expect any bytes.
func (s *Store) Catalog(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" || !isKey(key) {
		return nil
	}
	f, err := os.Open(s.catalogPath(key))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCatalogBytes+1))
	if err != nil || len(b) > maxCatalogBytes {
		return nil
	}
	return b
}

// SetCatalog keeps the catalog of an upstream for the next start. The key consists of lower-case letters and digits.
// Without a directory nothing is kept: a process that ends has no use for it.
func (s *Store) SetCatalog(key string, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dir == "":
		return nil
	case !isKey(key):
		return fmt.Errorf("%q is no key of a catalog", key)
	case len(b) > maxCatalogBytes:
		return ErrCatalogTooLong
	}
	s.makeRoom(key)
	return s.replace(catalogPrefix+key+catalogSuffix, b)
}

func (s *Store) catalogPath(key string) string {
	return filepath.Join(s.dir, catalogPrefix+key+catalogSuffix)
}

// isKey says whether a key can be a part of a file's name.
func isKey(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// makeRoom removes the oldest catalogs where a new one would be too many.
func (s *Store) makeRoom(key string) {
	names, err := filepath.Glob(s.catalogPath("*"))
	if err != nil || len(names) < maxCatalogs || slices.Contains(names, s.catalogPath(key)) {
		return
	}
	written := map[string]time.Time{}
	for _, n := range names {
		if info, err := os.Stat(n); err == nil {
			written[n] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(written[a].Compare(written[b]), strings.Compare(a, b))
	})
	for _, n := range names[:len(names)-maxCatalogs+1] {
		_ = os.Remove(n) // one too many does no harm
	}
}
