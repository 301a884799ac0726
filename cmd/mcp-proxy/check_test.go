package main

import "testing"

func TestNamesOfServersGiveTheTerminalNoOrders(t *testing.T) {
	for in, want := range map[string]string{
		"read file": "read file", "a\n\tb": "a b", "größe ✓": "größe ✓", "\x1b[2Jx": "\ufffd[2Jx", "a\u202eb": "a\ufffdb", "\u009b1m": "\ufffd1m",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}
