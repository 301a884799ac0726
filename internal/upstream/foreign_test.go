package upstream

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

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

func TestErrorsThatAreNotOfJSONRPC(t *testing.T) {
	for body, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`: true,
		`{"error":{"code":401,"message":"no"}}`:                              true,
		`{"error":"invalid_token","error_description":"expired"}`:            false,
		`{"error":{"message":"no such key","code":"invalid_api_key"}}`:       false,
		`{"error":{}}`: false,
	} {
		f, err := wire.Parse([]byte(body), wire.Upstream, wire.Limits{})
		if err != nil || f.Kind != wire.KindError {
			t.Fatalf("%s is read as %v, %v", body, f, err)
		}
		if got := isRPCError(f); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}
