package process

import (
	"testing"
	"time"
)

// What is seen of a child goes back when a process below it ends unnoticed; the sum does not, nor does anything count twice.
func TestTheSumOfProcessorTimeNeverGoesBack(t *testing.T) {
	g := NewUsage()
	one, two := &Child{home: &Home{Upstream: "up"}}, &Child{home: &Home{Upstream: "up"}}
	want := func(d time.Duration) {
		t.Helper()
		if got := g.Totals()["up"]; got != d {
			t.Errorf("the sum is %v, want %v", got, d)
		}
	}
	g.begin(one)
	g.see(one, 5*time.Second)
	g.see(one, 3*time.Second)
	want(5 * time.Second)
	g.begin(two)
	g.see(two, time.Second)
	g.end(one, nil)
	want(6 * time.Second)
	g.see(one, time.Minute) // a look that took long
	g.end(one, nil)
	want(6 * time.Second)
	g.Forget("up")
	want(time.Second)
}

func TestWhoseAProcessIs(t *testing.T) {
	a, b := &Child{}, &Child{}
	roots := map[int]*Child{10: a, 20: b}
	parents := map[int]int{1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 30: 1, 31: 30, 40: 41, 41: 40, 21: 12}
	for _, c := range []struct {
		p    process
		want *Child
	}{
		{process{pid: 10, group: 10}, a},
		{process{pid: 12, group: 12}, a}, // in a group of its own, below it all the same
		{process{pid: 31, group: 20}, b}, // has lost its parent, in the group still
		{process{pid: 21, group: 20}, b},
		{process{pid: 31, group: 31}, nil},
		{process{pid: 40, group: 40}, nil}, // a ring
		{process{pid: 99, group: 99}, nil},
	} {
		if got := owner(c.p, parents, roots); got != c.want {
			t.Errorf("%+v is given to %p, want %p", c.p, got, c.want)
		}
	}
}
