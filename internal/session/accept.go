package session

import (
	"net/http"
	"strings"
)

// acceptance is what a client takes as the answer to a POST.
type acceptance struct{ json, stream bool }

// accepted reads the Accept header. None, or a wildcard, is everything; clients that only name one type get that one.
func accepted(h http.Header) acceptance {
	values := h["Accept"]
	if len(values) == 0 {
		return acceptance{true, true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return acceptance{true, true}
	}
	var a acceptance
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, params, _ := strings.Cut(part, ";")
			if refused(params) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				a = acceptance{true, true}
			case "application/json", "application/*":
				a.json = true
			case "text/event-stream", "text/*":
				a.stream = true
			}
		}
	}
	return a
}

// refused says whether the parameters of an accepted type give it the weight zero.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if q, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(p), " ", ""), "q="); ok {
			return strings.Trim(q, "0.") == ""
		}
	}
	return false
}

// isJSON says whether a request says that its body is JSON, whatever its parameters and its case.
func isJSON(h http.Header) bool {
	v := h.Get("Content-Type")
	if v == "application/json" {
		return true
	}
	kind, _, _ := strings.Cut(v, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}
