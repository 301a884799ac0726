package upstream

import "testing"

func TestForeignObjects(t *testing.T) {
	for object, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:              false,
		`{"id":1,"result":{}}`:                              false,
		`{"id":1,"error":{"code":1,"message":"no"}}`:        false,
		`{"method":"notifications/message","params":{}}`:    false,
		`{"jsonrpc":"2.0","id":1}`:                          false,
		`{"jsonrpc":"2.0","id":1,"result":{},"extra":true}`: false,
		`{}`:                             true,
		`{"id":1}`:                       true,
		`{"level":30,"id":1}`:            true,
		`{"id":1,"error":"x","level":3}`: true,
		`{"id":5,"method":"GET","url":"/","msg":"request"}`: true,
		`[]`: false,
	} {
		if got := foreign([]byte(object)); got != want {
			t.Errorf("%s: %v, want %v", object, got, want)
		}
	}
}
