package parquet

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// A page states how long it is when it is decompressed, and Arrow's reader makes that room, which
// a meter counts. Its codecs for Snappy and zstd make more where the compressed data has more: of
// a few bytes, gigabytes that nobody counts. Here that is an error, for all of a program's users
// of Arrow's reader, whose pages would be wrong in any case.
func init() {
	for kind, decode := range map[compress.Compression]func(dst, src []byte) ([]byte, error){
		compress.Codecs.Snappy: decodeSnappy,
		compress.Codecs.Zstd:   decodeZstd,
	} {
		own, err := compress.GetCodec(kind)
		if err != nil {
			panic(err) // Arrow has both
		}
		compress.RegisterCodec(kind, codec{own, decode})
	}
}

// mostUnstated is what is decompressed where no room was made: a page of no bytes looks so too.
const mostUnstated = 1 << 30

// codec is one of Arrow's with another way to decompress.
type codec struct {
	compress.Codec
	decode func(dst, src []byte) ([]byte, error)
}

// DecodeWithError is how Arrow's reader asks.
func (c codec) DecodeWithError(dst, src []byte) ([]byte, error) { return c.decode(dst, src) }

// Decode implements compress.Codec.
func (c codec) Decode(dst, src []byte) []byte {
	out, err := c.decode(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

func decodeSnappy(dst, src []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if most := cmp.Or(len(dst), mostUnstated); n > most {
		return nil, fmt.Errorf("snappy: %d bytes where there is room for %d", n, most)
	}
	return snappy.Decode(dst, src)
}

// Decoders for room that was made, and for none.
var (
	inRoom = sync.Pool{New: func() any { return newZstd(zstd.WithDecodeAllCapLimit(true)) }}
	noRoom = sync.Pool{New: func() any { return newZstd(zstd.WithDecoderMaxMemory(mostUnstated)) }}
)

func newZstd(limit zstd.DOption) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), limit)
	if err != nil {
		panic(err) // of the options, which are right
	}
	return d
}

func decodeZstd(dst, src []byte) ([]byte, error) {
	pool := &inRoom
	if len(dst) == 0 {
		pool = &noRoom
	}
	d := pool.Get().(*zstd.Decoder)
	defer pool.Put(d)
	return d.DecodeAll(src, dst[:0:len(dst)])
}
