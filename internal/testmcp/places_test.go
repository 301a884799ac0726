package testmcp

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestPlacesThatAreNoServers(t *testing.T) {
	for name, tt := range map[string]struct {
		addr string
		want func(Answer) bool
	}{
		"refused": {RefusedAddr(t), func(a Answer) bool { return a.Status == 0 && strings.Contains(a.Error.Error(), "refused") }},
		"garbage": {GarbageAddr(t, "hello\r\n"), func(a Answer) bool { return a.Status == 0 && a.Error != nil }},
	} {
		if a := NewClient(t, "http://"+tt.addr, Legacy).Initialize(); !tt.want(a) {
			t.Errorf("%s: %d %v", name, a.Status, a.Error)
		}
	}
	conn, err := net.Dial("tcp", SilentAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Error(err)
	}
	check(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent place said %d bytes, %v", n, err)
	}
}

func TestRelayClosesIdleConnectionsOnly(t *testing.T) {
	h := ServeHTTP(t, Basic("web"), HTTPOptions{})
	r := StartRelay(t, strings.TrimPrefix(strings.TrimSuffix(h.URL, "/mcp"), "http://"), 500*time.Millisecond)
	c := Connect(t, h.URL, Legacy) // beside the relay, which might take a slow answer for idleness
	c.URL = r.Through(h.URL)
	s := c.Get("")
	if !s.WaitOver() || s.Err() == nil || s.Status != 200 {
		t.Errorf("the idle stream was not closed: %d %v", s.Status, s.Err())
	}
	if r.Connections() == 0 {
		t.Error("nothing went through the relay")
	}
}

func TestRelayCutsAndFreezes(t *testing.T) {
	h := ServeHTTP(t, Basic("web"), HTTPOptions{})
	r := StartRelay(t, strings.TrimPrefix(strings.TrimSuffix(h.URL, "/mcp"), "http://"), 0)
	c := Connect(t, r.Through(h.URL), Legacy)
	s := c.Get("")
	r.Freeze()
	h.Instance().Notify("notifications/tools/list_changed", "")
	h.Rec.Wait(t, func(r Record) bool { return r.Kind == Out && r.Method == "notifications/tools/list_changed" })
	if len(s.Events()) != 0 {
		t.Error("a frozen relay let something through")
	}
	r.Thaw()
	s.WaitMethod("notifications/tools/list_changed")
	r.Cut()
	if !s.WaitOver() || s.Err() == nil {
		t.Error("the stream was not cut")
	}
}
