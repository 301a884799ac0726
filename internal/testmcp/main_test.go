package testmcp

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(Cleanup))
}
