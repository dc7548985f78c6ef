// Package feed has what pipelines are measured with: fresh random data, and
// datasets that write it into batches at the cost of a copy, or at none.
package feed

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// chunk is what is filled at a time: enough to amortise seeding a generator.
const chunk = 4 << 20

// Random fills mem with bytes that no earlier run has had. It uses all processors,
// since gigabytes are to be filled, and joins them.
func Random(mem []byte) {
	var fillers errgroup.Group
	fillers.SetLimit(runtime.GOMAXPROCS(0))
	for c := range slices.Chunk(mem, chunk) {
		fillers.Go(func() error {
			fill(c)
			return nil
		})
	}
	_ = fillers.Wait() // none fails
}

func fill(mem []byte) {
	source := rand.NewPCG(rand.Uint64(), rand.Uint64())
	for ; len(mem) >= 8; mem = mem[8:] {
		binary.LittleEndian.PutUint64(mem, source.Uint64())
	}
	for i := range mem {
		mem[i] = byte(source.Uint64())
	}
}
