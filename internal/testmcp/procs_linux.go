package testmcp

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// stat gives the fields of /proc/PID/stat after the command name: state, parent, process group, session and so on.
func stat(pid int) []string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// Alive says whether a process runs; a zombie does not.
func Alive(pid int) bool {
	f := stat(pid)
	return len(f) > 1 && f[0] != "Z" && f[0] != "X"
}

// Descendants gives the living processes below pid.
func Descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range allPIDs() {
		if f := stat(p); len(f) > 1 {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], p)
		}
	}
	var out []int
	for next := slices.Clone(children[pid]); len(next) > 0; next = next[1:] {
		if Alive(next[0]) {
			out = append(out, next[0])
		}
		next = append(next, children[next[0]]...)
	}
	return out
}

// marked gives the living processes whose environment holds this text. It finds those that have left their
// parents and groups.
func marked(text string) []int {
	var out []int
	for _, p := range allPIDs() {
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p), "environ"))
		if err == nil && bytes.Contains(env, []byte(text)) && Alive(p) {
			out = append(out, p)
		}
	}
	return out
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
}

// RSS gives the resident memory of a process in bytes, 0 if it is gone.
func RSS(pid int) int {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n << 10
		}
	}
	return 0
}

func allPIDs() []int {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, e := range entries {
		if p, err := strconv.Atoi(filepath.Base(e)); err == nil {
			out = append(out, p)
		}
	}
	return out
}
