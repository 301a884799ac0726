package session

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A server may ask as soon as it has been told that the client is there; the client opens its stream a moment later, or
// never.
func TestAQuestionWaitsForTheStream(t *testing.T) {
	for _, c := range []struct {
		name string
		late time.Duration // when the stream comes
		told bool
	}{
		{"open already", 0, true},
		{"opened a moment later", streamPatience - time.Millisecond, true},
		{"opened too late", streamPatience + time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, &backend{}, nil)
				defer st.stop()
				cl := legacyClient(st)
				asked := make(chan error, 1)
				go func() {
					_, err := aside{st.m, st.only()}.Ask(t.Context(), "roots/list", nil)
					asked <- err
				}()
				pass(c.late)
				stream := cl.do(http.MethodGet, "")
				synctest.Wait()
				got := stream.data()
				if !c.told {
					if err := <-asked; !errors.Is(err, proxy.ErrCannotAsk) || len(got) != 0 {
						t.Errorf("asked without a stream: %v; the stream holds %q", err, got)
					}
					return
				}
				if len(got) != 1 || !strings.Contains(got[0], `"method":"roots/list"`) {
					t.Fatalf("the stream holds %q", got)
				}
				question, err := wire.Parse([]byte(got[0]), wire.Upstream, wire.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				cl.post(`{"jsonrpc":"2.0","id":` + string(question.ID.Of(question.Raw)) + `,"result":{"roots":[]}}`).wait()
				if err := <-asked; err != nil {
					t.Errorf("the answer is %v", err)
				}
			})
		})
	}
}

// only gives the one session that there is.
func (st *stage) only() *session {
	st.m.mu.Lock()
	defer st.m.mu.Unlock()
	for _, s := range st.m.sessions {
		return s
	}
	return nil
}
