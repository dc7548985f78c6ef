package stream_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// endless gives 1, 2, 3 and so on, at once.
func endless(shards int) stream.Stream[int] {
	return stream.New(shards, func(_ context.Context, _ loader.Pass, _ int, mark []byte) (stream.Reader[int], error) {
		c := new(counter)
		if mark == nil {
			return c, nil
		}
		return c, json.Unmarshal(mark, (*int)(c))
	})
}

type counter int

func (c *counter) Next(_ context.Context, item *stream.Item[int]) (ok bool, err error) {
	*c++
	*item = stream.Item[int]{Value: int(*c)}
	return true, nil
}

func (c *counter) AppendMark(dst []byte) ([]byte, error) {
	return strconv.AppendInt(dst, int64(*c), 10), nil
}

func (c *counter) Close() error { return nil }

// chains are operators that move no bytes.
func chains() map[string]stream.Stream[int] {
	s := endless(1)
	return map[string]stream.Stream[int]{
		"none":         s,
		"Map":          stream.Map(s, func(_ context.Context, n int) (int, error) { return n + 1, nil }),
		"MapRand":      stream.MapRand(s, func(_ context.Context, r *rand.Rand, n int) (int, error) { return n + r.IntN(2), nil }),
		"Filter":       stream.Filter(s, func(n int) bool { return n&1 == 0 }),
		"Take":         stream.Take(s, 1<<62),
		"Skip":         stream.Skip(s, 10),
		"Concat":       stream.Concat(s, s),
		"Repeat":       stream.Repeat(s, 2),
		"Shuffle":      stream.Shuffle(s, 100),
		"Shuffle10000": stream.Shuffle(s, 10_000),
		"Zip":          stream.Zip(s, s, func(_ context.Context, a, b int) (int, error) { return a + b, nil }),
		"Retry":        stream.Retry(s, stream.RetryOptions{}),
		"Mix": stream.Mix(stream.Once, stream.Source[int]{Stream: s, Weight: 3}, stream.Source[int]{Stream: s, Weight: 2},
			stream.Source[int]{Stream: s, Weight: 1}),
	}
}

func BenchmarkNext(b *testing.B) {
	cs := chains()
	for _, name := range slices.Sorted(maps.Keys(cs)) {
		s := cs[name]
		b.Run("op="+name, func(b *testing.B) {
			r, err := s.Open(ctx, pass, 0, nil)
			if err != nil {
				b.Fatal(err)
			}
			var item stream.Item[int]
			for range 300_000 { // buffers are full, and places are kept
				_, _ = r.Next(ctx, &item)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := r.Next(ctx, &item); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// Lines of 300 bytes from memory, and documents of 300 tokens into windows.
func BenchmarkText(b *testing.B) {
	const lines = 10_000
	line := strings.Repeat("x", 299) + "\n"
	text := stream.Lines(files(strings.Repeat(line, lines)), stream.LinesOptions{})
	tokens := stream.Map(text, func(_ context.Context, line []byte) ([]byte, error) { return line, nil })
	packed := stream.Pack(tokens, 2048, stream.PackOptions[byte]{})
	b.Run("op=Lines", func(b *testing.B) { drainAll(b, text, lines*300) })
	b.Run("op=Pack", func(b *testing.B) { drainAll(b, packed, lines*300) })
}

// drainAll reads a shard in each turn.
func drainAll[T any](b *testing.B, s stream.Stream[T], bytes int64) {
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		r, err := s.Open(ctx, pass, 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		var item stream.Item[T]
		for {
			if ok, err := r.Next(ctx, &item); err != nil {
				b.Fatal(err)
			} else if !ok {
				break
			}
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendMark(b *testing.B) {
	cs := chains()
	for _, name := range slices.Sorted(maps.Keys(cs)) {
		s := cs[name]
		b.Run("op="+name, func(b *testing.B) {
			r, err := s.Open(ctx, pass, 0, nil)
			if err != nil {
				b.Fatal(err)
			}
			var item stream.Item[int]
			for range 30_000 {
				_, _ = r.Next(ctx, &item)
			}
			mark := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if mark, err = r.AppendMark(mark[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Neither samples nor marks cost an allocation once buffers are full.
func TestNoAllocations(t *testing.T) {
	for name, s := range chains() {
		r, err := s.Open(ctx, pass, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		var item stream.Item[int]
		for range 300_000 {
			_, _ = r.Next(ctx, &item)
		}
		mark := make([]byte, 0, 4096)
		n := testing.AllocsPerRun(1000, func() {
			_, _ = r.Next(ctx, &item)
			mark, _ = r.AppendMark(mark[:0])
		})
		if n > 0.01 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
