package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// DefaultName is what clients call the proxy unless they are told otherwise.
const DefaultName = "mcp-proxy"

// Connection is what a client is to be told of a proxy.
type Connection struct {
	// Name is what the client calls the proxy.
	Name string
	// URL is the endpoint.
	URL string
	// TokenEnv is the environment variable with the token for the proxy; empty for none. The token itself goes into no file.
	TokenEnv string
	// Program is the path of this program, for clients that only launch commands.
	Program string
}

// ErrClient means that a client is not known. Its text names those that are.
var ErrClient = errors.New("there is no such client here")

// ClientNames are the clients that can be connected.
func ClientNames() (names []string) {
	for _, t := range targets() {
		names = append(names, t.name)
	}
	return names
}

func targetOf(name string) (target, error) {
	for _, t := range targets() {
		if t.name == name {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("%w: %q; it knows %s", ErrClient, name, strings.Join(ClientNames(), ", "))
}

// Plan is how a client is connected.
type Plan struct {
	Title   string // of the client
	File    string // its settings
	Text    string // what they must hold
	Command string // of the client, that does the same; empty for none
	After   string // what is to be done then

	target target
	c      Connection
}

// Connect plans how a client is connected. Nothing is changed until Write.
func Connect(client string, c Connection, h Home) (*Plan, error) {
	t, err := targetOf(client)
	if err != nil {
		return nil, err
	}
	p := &Plan{Title: t.title, File: t.file(h), After: t.after, target: t, c: c}
	if t.command != nil {
		p.Command = t.command(&c)
	}
	text, _, err := p.edit(nil)
	if err != nil {
		return nil, err
	}
	if p.Text = string(text); !t.toml {
		var b bytes.Buffer
		_ = json.Indent(&b, text, "", "  ") // it is what was just written
		p.Text = b.String()
	}
	p.Text = strings.TrimRight(p.Text, "\n")
	return p, nil
}

func (p *Plan) edit(text []byte) (out []byte, changed bool, err error) {
	if p.target.toml {
		return config.AddTable(text, p.target.object, p.c.Name, p.target.entry(&p.c))
	}
	return config.SetEntry(text, p.target.object, p.c.Name, entryJSON(p.target.entry(&p.c)))
}

// Write puts the entry into the client's file, and gives the name of the copy of what was there before; empty where there
// was no file, or it had the entry already. Everything else in the file stays as it is. The file is replaced whole.
func (p *Plan) Write() (backup string, changed bool, err error) {
	file := p.File
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // the link stays
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	there := err == nil
	out, changed, err := p.edit(text)
	if err != nil || !changed {
		if err != nil {
			err = fmt.Errorf("%s is left as it is: %w", p.File, err)
		}
		return "", false, err
	}
	mode := fs.FileMode(0o600)
	if there {
		if info, err := os.Stat(file); err == nil {
			mode = info.Mode().Perm()
		}
		if backup, err = keep(file, text, mode); err != nil {
			return "", false, err
		}
	} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", false, err
	}
	return backup, true, replace(file, out, mode)
}

// keep writes a copy beside a file, under a name that is free.
func keep(file string, text []byte, mode fs.FileMode) (name string, err error) {
	for i := 0; ; i++ {
		name = file + ".bak"
		if i > 0 {
			name = fmt.Sprintf("%s.bak%d", file, i)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return name, errors.Join(err, f.Close())
	}
}

// replace puts a new file in the place of an old one.
func replace(file string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
