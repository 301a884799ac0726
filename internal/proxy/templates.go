package proxy

import (
	"github.com/yosida95/uritemplate/v3"
)

// match finds the template that a URI follows, in the order of the list. The item stands for the URI itself.
func (v *view) match(uri string) *Item {
	for _, it := range v.items[Template] {
		t, err := uritemplate.New(it.Wire)
		if err != nil {
			continue
		}
		if t.Match(uri) != nil {
			return it
		}
	}
	return nil
}
