package group_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/leat-go/leat/device/order"
)

// The tests run with the order of every access checked. Benchmarks don't: they measure the
// usual cost.
func TestMain(m *testing.M) {
	if way := os.Getenv(faultIn); way != "" {
		if err := faultOf(way); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if f := flag.Lookup("test.bench"); f == nil || f.Value.String() == "" {
		if _, set := os.LookupEnv("LEAT_ORDER"); !set {
			os.Setenv("LEAT_ORDER", "1")
		}
	}
	code := m.Run()
	if err := order.Default().Err(); err != nil && code == 0 {
		fmt.Println("FAIL: accesses that nothing orders:", err)
		code = 1
	}
	os.Exit(code)
}
