package wire

import "testing"

func TestBuffersHaveTheLengthAskedFor(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 1024, 1025, 70_000, 400_000, 2 << 20} {
		b := GetBuffer(n)
		if len(b) != n {
			t.Errorf("GetBuffer(%d) has %d bytes", n, len(b))
		}
		PutBuffer(b)
		if c := GetBuffer(n); len(c) != n {
			t.Errorf("GetBuffer(%d) has %d bytes the second time", n, len(c))
		}
	}
	PutBuffer(nil)
	PutBuffer(make([]byte, 5))
	if b := GetBuffer(1024); cap(b) < 1024 {
		t.Errorf("a small buffer was kept for larger ones: %d", cap(b))
	}
}

func TestAFrameIsUsedAgain(t *testing.T) {
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"x","result":{"_meta":{}}}`} {
		f := GetFrame()
		raw := append(GetBuffer(0), text...)
		if err := ParseInto(f, raw, Upstream, Limits{}); err != nil {
			t.Fatal(err)
		}
		if string(f.Raw) != text {
			t.Errorf("the frame holds %s", f.Raw)
		}
		PutFrame(f)
	}
}
