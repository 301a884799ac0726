package reload

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

// servers are recorders by the name of their server, and the entries that differ from the plain one.
type servers map[string]*testmcp.Recorder

// with gives the configuration of these servers.
func (s servers) with(settings string, names ...string) string {
	entries := map[string]string{}
	for _, name := range names {
		entries[name] = s[name].Entry("basic", []string{name})
	}
	return testmcp.Config(settings, entries)
}

func (s servers) pid(t *testing.T, name string) int {
	t.Helper()
	starts := s[name].WaitN(t, 1, testmcp.Is(testmcp.Start))
	return starts[len(starts)-1].PID
}

func recorders(t *testing.T, names ...string) servers {
	t.Helper()
	s := servers{}
	for _, name := range names {
		s[name] = testmcp.NewRecorder(t)
	}
	return s
}

// run starts the program. Under the race detector it would wait for a second before it exits.
func run(t *testing.T, config string) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, config, testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
}

// successful says whether the last loading was good.
func successful(p *testmcp.Proxy) bool {
	return p.Metrics().Sum("mcp_proxy_config_last_reload_successful") == 1
}

// post asks for a reload and gives the answer.
func post(t *testing.T, p *testmcp.Proxy, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Base+"/-/reload", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// replace writes the file anew, where it is, as careless programs do.
func replace(t *testing.T, p *testmcp.Proxy, text string) {
	t.Helper()
	if err := os.WriteFile(p.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// link puts a symbolic link in the place of the file, to one in a directory that is itself reached by a link: so does
// Kubernetes.
func link(t *testing.T, p *testmcp.Proxy, version, text string) {
	t.Helper()
	dir := filepath.Dir(p.Config)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, version), 0o700))
	must(os.WriteFile(filepath.Join(dir, version, "mcp-proxy.json"), []byte(text), 0o600))
	must(os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if info, err := os.Lstat(p.Config); err == nil && info.Mode()&os.ModeSymlink == 0 {
		must(os.Symlink("..data/mcp-proxy.json", p.Config+".tmp"))
		must(os.Rename(p.Config+".tmp", p.Config))
	}
}
