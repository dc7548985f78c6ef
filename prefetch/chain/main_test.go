package chain_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/leat-go/leat/device/order"
)

// The tests run with the order of every access checked.
func TestMain(m *testing.M) {
	if _, set := os.LookupEnv("LEAT_ORDER"); !set {
		os.Setenv("LEAT_ORDER", "1")
	}
	code := m.Run()
	if err := order.Default().Err(); err != nil && code == 0 {
		fmt.Println("FAIL: accesses that nothing orders:", err)
		code = 1
	}
	os.Exit(code)
}
