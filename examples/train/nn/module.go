package nn

import (
	_ "embed"

	"github.com/leat-go/leat/device"
)

//go:embed nn.ptx
var ptx string

var module = device.RegisterModule(&device.Module{Name: "nn", PTX: ptx})

// threads in a block.
const threads = 256

// grid sets the launch up for n work items, one a thread.
func grid(l *device.Launch, n int) {
	l.Grid, l.Block = [3]uint32{blocks(n, threads), 1, 1}, [3]uint32{threads, 1, 1}
}

// blocks is how many pieces of the given size cover n, at least 1: a launch of none is
// refused.
func blocks(n, size int) uint32 { return uint32(max(1, (n+size-1)/size)) }

// launched are all that a step launches.
var launched = append(matMulKernels[:], biasKernel, biasReLUKernel, reluBackwardKernel, columnSumKernel,
	crossEntropyKernel, adamKernel, crossEntropyAtKernel, adamAtKernel, meanKernel)
