//go:build unix

package upstream

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// programUpstream is one whose program is no server.
func programUpstream(t *testing.T) *Upstream {
	t.Helper()
	cfg := serverConfig(config.TransportInProcess)
	cfg.Command, cfg.Env = "/bin/sh", map[string]string{"API_KEY": "open-sesame", "DIR": t.TempDir()}
	u := New(cfg, Options{Log: zap.NewNop(), Count: newRig(t).count, Version: "1"})
	t.Cleanup(u.Stop)
	return u
}

func script(text string) Run {
	return Run{Args: []string{"-c", text}, Stdin: []byte("hello"), Most: 1000}
}

func TestARunAnswersOrTellsWhyNot(t *testing.T) {
	u := programUpstream(t)
	for text, want := range map[string]struct{ answer, fault string }{
		`cat; echo; echo`:                 {"hello", ""},
		`exec <&-`:                        {"", ""},
		`printf '\377'`:                   {"\uFFFD", ""},
		`echo "key $API_KEY" >&2; exit 3`: {"", "the process exited with code 3; its last words: key <secret>"},
		`echo "key $API_KEY"; exit 3`:     {"", "code 3; its last words: key <secret>"},
		`kill -9 $$`:                      {"", "killed"},
		`yes`:                             {"", ErrAnswerTooLong.Error()},
		`(sleep 600; echo late) & echo first; exit 0`: {"first", ""},
	} {
		answer, err := u.Run(t.Context(), script(text))
		switch {
		case want.fault == "" && (err != nil || answer != want.answer):
			t.Errorf("%s: %q, %v", text, answer, err)
		case want.fault != "" && (err == nil || !strings.Contains(err.Error(), want.fault)):
			t.Errorf("%s: the fault is %v", text, err)
		}
	}
}

func TestARunEndsWithItsContextAndWithItsUpstream(t *testing.T) {
	for name, cause := range map[string]error{"context": context.Canceled, "upstream": ErrClosed} {
		t.Run(name, func(t *testing.T) {
			u := programUpstream(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := u.Run(ctx, script(`sleep 600 & echo $! >"$DIR/new"; mv "$DIR/new" "$DIR/pid"; wait`))
				ended <- err
			}()
			pid := 0
			testmcp.Eventually(t, "the process", func() bool {
				b, _ := os.ReadFile(filepath.Join(u.cfg.Env["DIR"], "pid"))
				pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
				return pid > 0
			})
			if name == "context" {
				cancel()
			} else {
				u.Stop()
			}
			if err := <-ended; !errors.Is(err, cause) {
				t.Errorf("it ends with %v", err)
			}
			// An orphan that has ended may wait for whoever reaps it.
			testmcp.Eventually(t, "the end of what it has started", func() bool { return !testmcp.Alive(pid) || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		})
	}
}
