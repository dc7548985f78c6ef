package capture_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/leat-go/leat/device/order"
)

// What the tests open by the usual ways is checked if the environment says so; what must
// be found at odds with the order is opened with a checker of its own.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := order.Default().Err(); err != nil && code == 0 {
		fmt.Println("FAIL: accesses that nothing orders:", err)
		code = 1
	}
	os.Exit(code)
}
