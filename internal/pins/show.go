package pins

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// Print writes what is to be approved for people. What a server says reaches the terminal with everything escaped that is
// not to be seen: control sequences, and characters that hide text or turn its direction.
func (w *Waiting) Print(out io.Writer) error {
	var b strings.Builder
	state := "changed"
	if w.New {
		state = "new"
	}
	fmt.Fprintf(&b, "  %s@%s  %s since %s\n", visible(w.Tool), w.Mark(), state, w.Since.Local().Format(time.DateTime))
	if !w.Whole() {
		b.WriteString("    its definition is too long to be shown\n")
	}
	if w.Whole() {
		for _, d := range w.Diff() {
			d.print(&b)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (d *Difference) print(b *strings.Builder) {
	if d.Path == "name" {
		return
	}
	fmt.Fprintf(b, "    %s\n", visible(d.Path))
	old, now := lines(d.Old), lines(d.New)
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	for _, line := range old {
		fmt.Fprintf(b, "      - %s\n", visible(line))
	}
	for _, line := range now {
		fmt.Fprintf(b, "      + %s\n", visible(line))
	}
}

// lines are those of a text, or the one of any other value.
func lines(value string) []string {
	if value == "" {
		return nil
	}
	var s string
	if json.Unmarshal([]byte(value), &s) == nil && value[0] == '"' {
		return strings.Split(s, "\n")
	}
	return []string{value}
}

// visible escapes what cannot be seen.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == ' ' || unicode.IsPrint(r) && !unicode.Is(unicode.Variation_Selector, r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u{%x}", r)
	}
	return b.String()
}
