package kernels

import (
	_ "embed"

	"github.com/leat-go/leat/device"
)

//go:embed kernels.ptx
var ptx string

var module = device.RegisterModule(&device.Module{Name: "kernels", PTX: ptx})

// Threads in a block, and the most blocks in a launch: enough to fill the largest
// GPUs, few enough that a grid-stride loop has work to amortise its start.
const (
	threads   = 256
	maxBlocks = 2048
)

// grid sets the launch up for n work items, spread by grid-stride loops.
func grid(l *device.Launch, n int64) {
	l.Grid = [3]uint32{blocks(n, maxBlocks), 1, 1}
	l.Block = [3]uint32{threads, 1, 1}
}

// rows sets the launch up for n work items in each of the given number of rows.
// A row is a y index.
func rows(l *device.Launch, n, rows int64) {
	y := min(rows, maxBlocks)
	l.Grid = [3]uint32{blocks(n, max(1, maxBlocks/y)), uint32(y), 1}
	l.Block = [3]uint32{threads, 1, 1}
}

func blocks(n, most int64) uint32 { return uint32(min(max(1, (n+threads-1)/threads), most)) }
