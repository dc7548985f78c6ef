package order_test

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/order"
)

// A stream reads what another one uploads, and the wait between them was forgotten. On
// this device the bytes would most likely be right.
func Example() {
	drv, err := cpu.New(cpu.Options{})
	if err != nil {
		panic(err)
	}
	checker := order.New(order.Options{}) // LEAT_ORDER=1 does as much for cpu.Open
	dev := device.New(checker.Wrap(drv))
	upload, _ := dev.NewStream(device.StreamOptions{Name: "upload"})
	compute, _ := dev.NewStream(device.StreamOptions{Name: "compute"})
	uploaded, _ := dev.NewEvent(device.EventOptions{Name: "uploaded"})
	weights, _ := dev.Alloc(1024)
	weights.Describe(func(offset, bytes int64) (name, hint string) { return "the weights", "" })
	host, _ := dev.AllocHost(1024, device.HostOptions{})

	_ = upload.CopyH2D(weights.View(), host.Bytes())
	_ = upload.Record(uploaded)
	err = compute.Memset(weights.View().Slice(0, 512), 0)
	fmt.Println(lines.ReplaceAllString(err.Error(), "$1:…"))

	fmt.Println(errors.Join(compute.Wait(uploaded), compute.Memset(weights.View().Slice(0, 512), 0)))
	// Output:
	// cpu: Memset: order: Memset on stream "compute" of cpu (order/example_test.go:…) writes the weights, bytes 0 to 512, which CopyH2D on stream "upload" of cpu (order/example_test.go:…) may still write: stream "compute" of cpu has not waited for event "uploaded", recorded behind that at order/example_test.go:…
	// <nil>
}

var lines = regexp.MustCompile(`(\.go):\d+`)
