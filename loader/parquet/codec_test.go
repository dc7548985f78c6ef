package parquet_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	_ "github.com/leat-go/leat/loader/parquet"
)

// Compressed data that has more than its page states takes no memory for it. What is right comes
// out as ever, with and without room.
func TestPagesThatLieAboutTheirSize(t *testing.T) {
	whole := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	for name, kind := range map[string]compress.Compression{"snappy": compress.Codecs.Snappy, "zstd": compress.Codecs.Zstd} {
		codec, err := compress.GetCodec(kind)
		require.NoError(t, err)
		packed := codec.Encode(nil, whole)
		for _, room := range [][]byte{nil, make([]byte, len(whole))} {
			out, err := compress.Decode(codec, room, packed)
			require.NoError(t, err, name)
			require.True(t, bytes.Equal(whole, out), name)
		}
		lies := [][]byte{packed}
		if name == "snappy" {
			lies = append(lies, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}) // 4 GiB
		}
		small := make([]byte, 1000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, src := range lies {
			_, err := compress.Decode(codec, small, src)
			require.Error(t, err, name)
			require.Panics(t, func() { codec.Decode(small, src) }, name)
		}
		_, err = compress.Decode(codec, small, packed[:len(packed)/2])
		require.Error(t, err, name)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), name)
	}
}
