package proxy

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a asks
		ended := make(chan error, 2*maxAsks)
		wait := func(ctx context.Context) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
		}
		for i := range maxAsks {
			if !a.begin(t.Context(), fmt.Sprint(i), wait) {
				t.Fatalf("question %d was refused", i)
			}
		}
		if a.begin(t.Context(), "more", wait) {
			t.Error("a question over the bound was taken")
		}
		if a.withdraw("more") || !a.withdraw("0") {
			t.Error("only what is open can be taken back")
		}
		if err := <-ended; err != errWithdrawn {
			t.Errorf("the question that was taken back ended with %v", err)
		}
		synctest.Wait()
		if a.begin(t.Context(), "1", wait) {
			t.Error("a second question with an id that is open was taken")
		}
		if !a.begin(t.Context(), "0", wait) {
			t.Error("an id cannot be used again")
		}
		a.end()
		if len(ended) != maxAsks {
			t.Errorf("%d questions have ended", len(ended))
		}
		if a.withdraw("1") {
			t.Error("a question is open after the end")
		}
		a.end() // nothing is open
		if !a.begin(t.Context(), "1", wait) {
			t.Error("the next exchange cannot ask")
		}
		a.end()
	})
}

func TestWhoCanBeAskedForWhat(t *testing.T) {
	st := newStage(t, Options{}, nil, &server{id: "s"})
	defer st.stop()
	u := st.ups.Get("s")
	for _, c := range []struct {
		caps           Caps
		method, params string
		want           bool
	}{
		{CapElicitForm, methodElicit, `{}`, true},
		{CapElicitForm, methodElicit, `{"mode":"form"}`, true},
		{CapElicitForm, methodElicit, `{"mode":"url"}`, false},
		{CapElicitURL, methodElicit, `{"mode":"url"}`, true},
		{CapElicitURL, methodElicit, `{}`, false},
		{CapSampling, methodSample, `{}`, true},
		{CapSampling, methodSample, `{"tools":[]}`, false},
		{CapSampling | CapSamplingTools, methodSample, `{"tools":[]}`, true},
		{CapElicitForm, methodSample, `{}`, false},
		{CapRoots, methodRoots, `{}`, true},
		{CapSampling, methodRoots, `{}`, false},
		{^Caps(0), "tools/call", `{}`, false},
	} {
		one := &questioner{p: st.p, u: u, caller: &Caller{Caps: c.caps}}
		params, _ := wire.ObjectAt([]byte(c.params), wire.Span{End: len(c.params)})
		if got := one.can(c.method, []byte(c.params), params); got != c.want {
			t.Errorf("%b, %s %s: %v", c.caps, c.method, c.params, got)
		}
	}
}
