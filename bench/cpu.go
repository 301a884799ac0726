package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// ticksPerSecond is the unit of the times in /proc/PID/stat. Linux shows it as
// 100 to every program, whatever the kernel's own clock.
const ticksPerSecond = 100

// cpuTime is the processor time, user and system, that a process has used so
// far, without its children. It is known on Linux only.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

func parseStat(stat []byte) (time.Duration, error) {
	// The second field is the command in parentheses and may hold spaces and
	// parentheses itself; utime and stime are the 12th and 13th after it.
	_, rest, found := cutLast(stat, ')')
	fields := bytes.Fields(rest)
	if !found || len(fields) < 13 {
		return 0, errors.New("unknown form of /proc/PID/stat")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading /proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond), nil
}

func cutLast(text []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, sep)
	if i < 0 {
		return text, nil, false
	}
	return text[:i], text[i+1:], true
}
