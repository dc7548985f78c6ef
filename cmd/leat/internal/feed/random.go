// Package feed has what pipelines are measured with: fresh random data, and
// datasets that write it into batches at the cost of a copy, or at none.
package feed

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
)

// chunk is what is filled at a time: enough to amortise seeding a generator.
const chunk = 4 << 20

// Random fills mem with bytes that no earlier run has had. It uses all processors,
// since gigabytes are to be filled, and joins them.
func Random(mem []byte) {
	chunks := make(chan []byte)
	var fillers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		fillers.Go(func() {
			for c := range chunks {
				fill(c)
			}
		})
	}
	for len(mem) > 0 {
		n := min(chunk, len(mem))
		chunks <- mem[:n]
		mem = mem[n:]
	}
	close(chunks)
	fillers.Wait()
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
