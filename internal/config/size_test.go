package config

import "testing"

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1048576": 1 << 20, "512MiB": 512 << 20, "512 mib": 512 << 20, "2G": 2 << 30, "2gb": 2e9, "3kB": 3000, "7B": 7, " 8KiB ": 8 << 10, "1TiB": 1 << 40,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1e9", "0x10", "9999999999TiB", "99999999999999999999", "1 M B"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestSizesAreWrittenAsTheyAreRead(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1 << 20: "1MiB", 1536 << 20: "1536MiB", 3 << 30: "3GiB", 1000: "1000"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
