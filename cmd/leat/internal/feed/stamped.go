package feed

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
)

// stampBytes is the head of a Stamped sample: its index.
const stampBytes = 8

// Stamped is a loader.Dataset whose samples, each a whole batch, cost its readers
// nothing, so that what is measured is copies and compute. All samples have the
// same random bytes behind a head of 8 bytes, their index. Read writes the bytes
// into memory that it sees for the first time, and from then on, since a
// pipeline's slots come round again and nobody else writes to them, the head alone.
//
// One Stamped is for one pipeline, of batch size 1.
type Stamped struct {
	samples int
	filler  []byte
	sum     uint64 // of the filler with head 0

	mu     sync.Mutex
	filled map[*byte]bool
}

// NewStamped makes a dataset of samples of so many bytes, at least those of the
// head.
func NewStamped(samples int, bytes int64) *Stamped {
	s := &Stamped{samples: samples, filler: make([]byte, max(bytes, stampBytes)), filled: make(map[*byte]bool)}
	Random(s.filler)
	clear(s.filler[:stampBytes])
	s.sum = kernels.ChecksumOf(s.filler)
	return s
}

// Len implements loader.Dataset.
func (s *Stamped) Len() int { return s.samples }

// Fields implements loader.Dataset.
func (s *Stamped) Fields() []loader.Field {
	return []loader.Field{{Name: "batch", DType: dtype.Uint8, Shape: []int{len(s.filler)}}}
}

// Read implements loader.Dataset.
func (s *Stamped) Read(_ context.Context, index int, row *loader.Row) error {
	mem := row.Bytes("batch")
	if s.firstSight(mem) {
		copy(mem, s.filler)
	}
	binary.LittleEndian.PutUint64(mem, uint64(index))
	return nil
}

// firstSight reports whether mem is not known to hold the filler. With invariants
// the loader overwrites a row before it is read.
func (s *Stamped) firstSight(mem []byte) bool {
	if invariants.Enabled {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	start := &mem[0]
	known := s.filled[start]
	s.filled[start] = true
	return !known
}

// Sum is the checksum of a sample, as kernels.Checksum finds it on the device.
func (s *Stamped) Sum(index int) uint64 {
	var head [stampBytes]byte
	blank := kernels.ChecksumOf(head[:])
	binary.LittleEndian.PutUint64(head[:], uint64(index))
	return s.sum - blank + kernels.ChecksumOf(head[:]) // words count one by one
}
