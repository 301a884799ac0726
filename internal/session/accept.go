package session

import (
	"net/http"
	"strconv"
	"strings"
)

// acceptance is what a client takes as the answer to a POST.
type acceptance struct {
	json, stream bool
	// streamFirst says that the client would rather have a stream: it gives it more weight, or the same and names it
	// first. Otherwise what is ready at once comes as JSON.
	streamFirst bool
}

// preference is how much a client wants one media type: its weight in thousandths, and where it named it.
type preference struct{ weight, place int }

// take notes that the type was named. Of several names for it the one with the most weight holds.
func (p *preference) take(q preference) {
	if q.weight > p.weight {
		*p = q
	}
}

// before says whether the client would rather have this type than the other.
func (p preference) before(q preference) bool {
	return p.weight > q.weight || p.weight == q.weight && p.place < q.place
}

// accepted reads the Accept header. None, or a wildcard, is everything; clients that only name one type get that one.
func accepted(h http.Header) acceptance {
	values := h["Accept"]
	if len(values) == 0 {
		return acceptance{json: true, stream: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return acceptance{json: true, stream: true}
	}
	var json, stream preference
	place := 0
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, params, _ := strings.Cut(part, ";")
			p := preference{weight(params), place}
			place++
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				json.take(p)
				stream.take(p)
			case "application/json", "application/*":
				json.take(p)
			case "text/event-stream", "text/*":
				stream.take(p)
			}
		}
	}
	return acceptance{json: json.weight > 0, stream: stream.weight > 0, streamFirst: stream.before(json)}
}

// weight is what the parameters of an accepted type give it, in thousandths: 1000 unless they say less (RFC 9110,
// section 12.4.2). What is no weight counts for nothing said.
func weight(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		if q, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(p), " ", ""), "q="); ok {
			if f, err := strconv.ParseFloat(q, 64); err == nil && f >= 0 && f <= 1 {
				return int(f * 1000)
			}
		}
	}
	return 1000
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
