//go:build goexperiment.jsonv2

package wire

import (
	"bytes"
	"encoding/json/jsontext"
	"testing"
)

// BenchmarkJSONText does what ParseInto does with the standard tokenizer: validate everything and find the members of
// the envelope and of the result. Run it with GOEXPERIMENT=jsonv2.
func BenchmarkJSONText(b *testing.B) {
	benchSizes(b, func(b *testing.B, raw []byte) {
		dec := new(jsontext.Decoder)
		spans := make([]Span, 0, 16)
		for b.Loop() {
			dec.Reset(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true)) // a Buffer is read in place
			var err error
			if spans, err = tokenSpans(dec, spans[:0], 2); err != nil || len(spans) < 4 {
				b.Fatal(err, len(spans))
			}
		}
	})
}

// tokenSpans notes the values of the members of objects down to a depth.
func tokenSpans(dec *jsontext.Decoder, spans []Span, depth int) ([]Span, error) {
	if _, err := dec.ReadToken(); err != nil {
		return spans, err
	}
	for dec.PeekKind() != '}' {
		if _, err := dec.ReadToken(); err != nil {
			return spans, err
		}
		start := int(dec.InputOffset())
		var err error
		if dec.PeekKind() == '{' && depth > 1 {
			spans, err = tokenSpans(dec, spans, depth-1)
		} else {
			err = dec.SkipValue()
		}
		if err != nil {
			return spans, err
		}
		spans = append(spans, Span{start, int(dec.InputOffset())})
	}
	_, err := dec.ReadToken()
	return spans, err
}
