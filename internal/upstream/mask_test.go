package upstream

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

func TestEverySecretOfAServerIsKnown(t *testing.T) {
	cfg := &config.Server{
		URL:     "https://user:url-password@example.com/mcp?key=query-value&x=a%20b%20c%20d",
		Headers: map[string]config.Secret{"Authorization": "Bearer bearer-value", "Proxy-Authorization": "Basic dXNlcjpiYXNpYy1wYXNzd29yZA=="},
		Env:     map[string]string{"PRIVATE_KEY": "line-one\nline-two\n"},
	}
	got := secretValues(cfg)
	for _, want := range []string{"url-password", "query-value", "a b c d", "a+b+c+d", "bearer-value", "Bearer bearer-value", "basic-password",
		"dXNlcjpiYXNpYy1wYXNzd29yZA==", "line-one", "line-two", "line-one\nline-two\n"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

func TestSecretsInPathsOfServersAreKnown(t *testing.T) {
	for path, want := range map[string][]string{
		"/api/mcp/s/OGZkN2U1YjQtMWM0ZS00/mcp":                  {"OGZkN2U1YjQtMWM0ZS00"},
		"/v1/2f6b1c1e-8f0e-4c52-9a3e-1d2c3b4a5f60/sse":         {"2f6b1c1e-8f0e-4c52-9a3e-1d2c3b4a5f60"},
		"/key=abcDEF0123456789/mcp":                            {"key=abcDEF0123456789"},
		"/u/abcdefghijklmnopqrstuvwxyzABCDEFGHIJ":              {"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"},
		"/t/c2VjcmV0%2Bwith%2Fmore0/mcp":                       {"c2VjcmV0+with/more0", "c2VjcmV0%2Bwith%2Fmore0"},
		"/mcp":                                                 nil,
		"/servers/model-context-protocol-reference-server/mcp": nil,
		"/api/v2/streamable-http":                              nil,
		"/2025-03-26/stream":                                   nil,
	} {
		got := secretValues(&config.Server{URL: config.Secret("https://example.com" + path)})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("of %s %q are secret, want %q", path, got, want)
		}
	}
}

func TestMaskedTexts(t *testing.T) {
	m := newMasker([]string{"secret", "secret-and-longer"})
	if got := m.text("a secret-and-longer, a secret"); got != "a <secret>, a <secret>" {
		t.Errorf("text gives %q", got)
	}
	for text, want := range map[string]string{
		"short secret": "short <secret>",
		strings.Repeat("x", 15) + "secret-and-longer": strings.Repeat("x", 15) + "<secr",
		strings.Repeat("x", 30) + "secret-and-longer": strings.Repeat("x", 20),
	} {
		if got := m.Clip(text, 20); got != want {
			t.Errorf("the first 20 bytes of %q are %q, want %q", text, got, want)
		}
	}
	var none *masker
	if got := none.Clip("abc", 2); got != "ab" {
		t.Errorf("without secrets the clip is %q", got)
	}
}

func TestMaskedErrorsAreWhatTheyWere(t *testing.T) {
	m := newMasker([]string{"secret"})
	err := m.error(errors.Join(io.EOF, errors.New("with a secret")))
	if !errors.Is(err, io.EOF) || strings.Contains(err.Error(), "a secret") || !strings.Contains(err.Error(), "<secret>") {
		t.Errorf("the error is %v", err)
	}
	if err := m.error(io.EOF); err != io.EOF {
		t.Errorf("an error without secrets becomes %v", err)
	}
	if err := m.error(nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

func TestWhatIsSecretOfAServer(t *testing.T) {
	cfg := &config.Server{AuthToken: "token-value", Headers: map[string]config.Secret{"X": "header-value", "Y": "short"},
		Env: map[string]string{"API_KEY": "key-value", "my_password": "pass-value", "LOG_LEVEL": "verbose-value"}}
	got := secretValues(cfg)
	slices.Sort(got)
	if want := []string{"header-value", "key-value", "pass-value", "token-value"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// stderrOf gives what the log holds after a child has written this to stderr.
func stderrOf(c *count.Counters, text string, secrets ...string) (logged []string) {
	core, logs := observer.New(zap.InfoLevel)
	process.NewTail(zap.New(core), c, newMasker(secrets)).Drain(strings.NewReader(text))
	for _, e := range logs.All() {
		logged = append(logged, e.ContextMap()["line"].(string))
	}
	return logged
}

// No part of a secret that the configuration knows may be read in the log, wherever the line is cut.
func TestStderrHidesSecrets(t *testing.T) {
	t.Parallel()
	const short, long = "hunter2-hunter2", "hunter2-hunter2-and-more-of-it-0123456789"
	for pad := range process.KeptBytes + 100 {
		if pad > 60 && pad < process.KeptBytes-100 {
			continue
		}
		logged := stderrOf(newRig(t).count, strings.Repeat("=", pad)+long+" "+long+" "+short+"\n", short, long)
		for _, part := range []string{"hunter2", "-and-more"} {
			if strings.Contains(logged[0], part) {
				t.Fatalf("behind %d bytes: %q", pad, logged[0])
			}
		}
		if len(logged[0]) > process.KeptBytes {
			t.Errorf("behind %d bytes: a line of %d bytes", pad, len(logged[0]))
		}
	}
}
