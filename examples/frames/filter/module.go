package filter

import (
	_ "embed"

	"github.com/leat-go/leat/device"
)

//go:embed filter.ptx
var ptx string

var module = device.RegisterModule(&device.Module{Name: "filter", PTX: ptx})

const (
	// threads in a block.
	threads = 256
	// maxRows is how many rows of blocks a launch has at most: enough to fill the
	// largest GPUs. A block goes on with every maxRows-th row.
	maxRows = 2048
)

// perRow sets the launch up for one row of blocks for each row of a picture.
func perRow(l *device.Launch, height int) {
	l.Grid, l.Block = [3]uint32{1, uint32(min(height, maxRows)), 1}, [3]uint32{threads, 1, 1}
}
