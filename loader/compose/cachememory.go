package compose

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/loader"
)

// CacheMemory keeps the samples of ds in memory, as they are read, until maxBytes are used:
// each is read once, and then copied from there. Samples that find no room are read each
// time; none is thrown out for another, since in a shuffled epoch each is as likely as any
// other to be wanted next. Eight bytes a sample of ds are part of maxBytes, and are used at
// once. Two goroutines that ask for a sample at the same time, before it is held, both read
// it.
//
// What ds draws from Row.Rand is kept with the sample, so random augmentation belongs
// behind the cache, in a Map. It is an error if samples of ds are at other indices in every
// epoch: shuffle the cache instead.
func CacheMemory(ds loader.Dataset, maxBytes int64) (*MemoryCache, error) {
	p, err := newPart("CacheMemory: ds", ds)
	if err == nil {
		err = p.steady("CacheMemory: ds")
	}
	if table := 8 * int64(p.length); maxBytes < table {
		err = errors.Join(err, mistake("CacheMemory: maxBytes", maxBytes, fmt.Sprintf("%d, 8 for each sample of ds, and room for samples", table)))
	}
	if err != nil {
		return nil, err
	}
	codec, err := loader.NewCodec(p.fields)
	if err != nil {
		return nil, err
	}
	c := &MemoryCache{single: single{[1]part{p}}, scratches: scratches{fields: p.fields}, codec: codec}
	c.places = make([]atomic.Uint64, p.length)
	c.left = maxBytes - 8*int64(p.length)
	c.slabs.Store(new([][]byte))
	return c, nil
}

// MemoryCache is a Dataset; see CacheMemory. Any number of goroutines may use it.
type MemoryCache struct {
	single
	scratches scratches
	codec     *loader.Codec
	places    []atomic.Uint64          // of the samples: noPlace, refused, or where they are
	slabs     atomic.Pointer[[][]byte] // memory of many samples each, which is never moved
	reads     atomic.Int64

	mu   sync.Mutex
	left int64 // bytes of the limit
	used int   // bytes of the last slab
	held int
	size int64 // of the samples that are held
}

// A place is a slab's number, from 1, and 32 bits of the offset in it. There are eight bytes
// with the length of the sample, and behind them the sample.
const (
	noPlace = 0 // the sample has not been read
	refused = 1 // it is being kept, or finds no room
)

// slabBytes is the size of a slab, unless a sample is larger.
const slabBytes = 1 << 20

// CacheStats is what a cache holds.
type CacheStats struct {
	// Held is how many samples are held, of Samples in all. Bytes is their size.
	Held, Samples int
	Bytes         int64
	// Reads is how many samples were read of the dataset below.
	Reads int64
}

// Stats is what is held now.
func (c *MemoryCache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Held: c.held, Samples: c.Len(), Bytes: c.size, Reads: c.reads.Load()}
}

// Fields implements loader.Dataset.
func (c *MemoryCache) Fields() []loader.Field { return c.part[0].fields }

// Fingerprint implements loader.Fingerprinter.
func (c *MemoryCache) Fingerprint() uint64 { return fingerprint(kindCache, c.part[:]) }

// Read implements loader.Dataset.
func (c *MemoryCache) Read(ctx context.Context, index int, row *loader.Row) error {
	return c.read(ctx, uint64(row.Epoch()), index, row)
}

func (c *MemoryCache) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	if uint(index) >= uint(c.Len()) {
		return &IndexError{Index: index, Len: c.Len()}
	}
	place := c.places[index].Load()
	if place > refused {
		return c.codec.Load(row, c.at(place))
	}
	s, err := c.scratches.get()
	if err != nil {
		return err
	}
	c.reads.Add(1)
	sample, err := c.part[0].readTo(ctx, s, pass, index, row)
	if err == nil {
		row.CopyFrom(sample)
		if place == noPlace && c.places[index].CompareAndSwap(noPlace, refused) {
			c.keep(index, sample)
		}
	}
	c.scratches.put(s)
	return err
}

// at is the sample at a place.
func (c *MemoryCache) at(place uint64) []byte {
	b := (*c.slabs.Load())[place>>32-1][uint32(place):]
	return b[8 : 8+binary.LittleEndian.Uint64(b)]
}

// keep keeps a sample if there is room.
func (c *MemoryCache) keep(index int, sample *loader.Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slabs := *c.slabs.Load()
	most := 8 + c.codec.Most()
	if len(slabs) == 0 || len(slabs[len(slabs)-1])-c.used < most {
		size := min(int64(max(slabBytes, most)), c.left)
		if size < int64(most) {
			return
		}
		c.left -= size
		slabs = append(slabs[:len(slabs):len(slabs)], make([]byte, size)) // a copy: others read the old
		c.slabs.Store(&slabs)
		c.used = 0
	}
	slab := slabs[len(slabs)-1]
	b := c.codec.Append(slab[:c.used+8:len(slab)], sample)
	n := len(b) - c.used - 8
	binary.LittleEndian.PutUint64(slab[c.used:], uint64(n))
	c.places[index].Store(uint64(len(slabs))<<32 | uint64(c.used))
	c.used += 8 + n
	c.held++
	c.size += int64(n)
}
