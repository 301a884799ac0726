package wire

import "testing"

func TestRevisions(t *testing.T) {
	for _, v := range Revisions() {
		if IsLegacy(v) == IsModern(v) || LooksModern(v) != IsModern(v) {
			t.Errorf("%s: legacy %v, modern %v, looks modern %v", v, IsLegacy(v), IsModern(v), LooksModern(v))
		}
	}
	if IsLegacy("2020-01-01") || IsModern("2027-01-01") || !LooksModern("2027-01-01") || LooksModern("") {
		t.Error("an unknown revision is taken for a known one")
	}
	if Legacy.String() != "legacy" || Modern.String() != "modern" {
		t.Errorf("eras are called %s and %s", Legacy, Modern)
	}
}
