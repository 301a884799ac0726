package process

import (
	"os"
	"testing"
)

func TestAStatLineIsRead(t *testing.T) {
	const tail = " S 17 17 9 0 -1 4194304 100 0 0 0 3 4 5 6 20 0 1 0 777 1000000 250 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n"
	for _, name := range []string{"(sh)", "(a b)", "(x) y)", "()) S 1 1)"} {
		p, err := parseStat([]byte("42 " + name + tail))
		want := process{pid: 42, parent: 17, group: 17, state: 'S', ticks: 18, started: 777, pages: 250}
		if err != nil || p != want {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh", "42 sh) S 1", "42 (sh) S 17 17", "x (sh)" + tail, "42 (sh) S x 17 9 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"} {
		if p, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func FuzzStat(f *testing.F) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Skip(err)
	}
	f.Add(b)
	f.Add([]byte("1 () S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseStat(b)
		if err == nil && p.state == 0 {
			t.Errorf("%q gives %+v", b, p)
		}
	})
}

func TestARecordNamesThisProcess(t *testing.T) {
	r, ok := recordOf(os.Getpid())
	if !ok {
		t.Skip("/proc is not of this namespace")
	}
	if !r.lives() {
		t.Errorf("%+v does not live", r)
	}
	later, other, everybody := r, r, r
	later.Started++
	other.Boot = "x"
	everybody.PID = 1
	for _, r := range []childRecord{later, other, everybody, {}} {
		if r.lives() {
			t.Errorf("%+v lives", r)
		}
	}
}
