package upstream

import (
	"net/http"
	"testing"
)

// A refused standing stream is asked for again where it is something before the server that refuses it, or one that has
// offered it fails. Something was missed only where there was a stream before.
func TestWhichRefusalsOfAStandingStreamAreForGood(t *testing.T) {
	for status, want := range map[int][2]bool{ // asked again; where there was a stream before
		400: {}, 404: {}, 405: {}, 406: {}, 410: {}, 500: {false, true}, 501: {false, true},
		502: {true, true}, 503: {true, true}, 504: {true, true}, 200: {},
	} {
		for i, been := range []bool{false, true} {
			r := newRig(t)
			conn := testHTTPConn(t, r, &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return respond(status, "", ""), nil }}, legacyPeer)
			if again := conn.readStream(t.Context(), &place{been: been}, func() {}); again != want[i] {
				t.Errorf("%d, with a stream before: %v: asked again: %v", status, been, again)
			}
			if missed := len(r.noted()) == 1; missed != (been && !want[i]) {
				t.Errorf("%d, with a stream before: %v: missed: %v", status, been, missed)
			}
		}
	}
}
