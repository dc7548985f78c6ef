package prefetch_test

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Another library computes in a stream of its own, and takes addresses of device memory.
// Its stream is the pipeline's compute stream: so the library's work waits for each batch's
// copy, and the next copy for the library's work, without a word of it to the library.
func ExampleNew_foreignStream() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	library := newLibrary(dev)
	defer library.close()

	compute, err := dev.StreamFromHandle(library.stream()) // on a GPU, a CUstream
	check(err)
	defer compute.Close() // the library's stream stays as it is
	ld, err := loader.New(Squares{}, 5, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()
	for batch, err := range pf.All(context.Background()) {
		check(err)
		y := batch.Field("y").View
		library.step(y.Address(), y.Size()) // on a GPU, a CUdeviceptr
	}
	fmt.Println(library.result())
	// Output: 51
}

// library stands for one that knows nothing of Leat but numbers.
type library struct {
	dev *device.Device
	own *device.Stream
	out *device.Buffer
}

func newLibrary(dev *device.Device) *library {
	own, err := dev.NewStream(device.StreamOptions{})
	check(err)
	out, err := dev.Alloc(4)
	check(err)
	return &library{dev, own, out}
}

func (l *library) stream() uintptr { return uintptr(l.own.Handle()) }

// step submits the mean of some numbers, and does not wait.
func (l *library) step(at device.Address, bytes int64) {
	launch := device.Launch{Kernel: mean, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	l.out.View().Out(&launch.Args)
	l.dev.ViewOf(at, bytes).In(&launch.Args)
	check(l.own.Launch(&launch))
}

func (l *library) result() float32 {
	host, err := l.dev.AllocHost(4, device.HostOptions{})
	check(err)
	defer host.Close()
	check(l.own.CopyD2H(host.Bytes(), l.out.View()))
	check(l.own.Synchronize(context.Background()))
	return dtype.As[float32](host.Bytes())[0]
}

func (l *library) close() {
	check(l.out.Close())
	check(l.own.Close())
}
