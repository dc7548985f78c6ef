package stream_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// decimal writes numbers as text.
var decimal = stream.Format[int]{
	Append: func(dst []byte, n int) ([]byte, error) { return strconv.AppendInt(dst, int64(n), 10), nil },
	Parse:  func(src []byte) (int, error) { return strconv.Atoi(string(src)) },
}

func cacheFile(s stream.Stream[int], directory string) *stream.FileCache[int] {
	return stream.CacheFile(s, directory, "1", decimal, stream.FileCacheOptions{})
}

// filesIn are the names in a directory.
func filesIn(t require.TestingT, directory string) (names []string) {
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// reads is a stream of numbers whose reads are counted.
func reads(open *atomic.Int64, n, shards int) (stream.Stream[int], *atomic.Int64) {
	read := new(atomic.Int64)
	return stream.Map(count(open, 0, n, shards), func(_ context.Context, n int) (int, error) {
		read.Add(1)
		return n, nil
	}), read
}

// A whole pass makes the files, and no value is read again: neither by later passes nor by
// another process. Origins are kept.
func TestAFileCacheReadsEachValueOnce(t *testing.T) {
	var open atomic.Int64
	s, read := reads(&open, 500, 3)
	directory := t.TempDir()
	for range 2 {
		c := cacheFile(s, directory)
		for epoch := range 3 {
			for shard := range 3 {
				require.Equal(t, readAll(t, s, shard, &open), readAll(t, c.Stream(), shard, &open), "epoch %d", epoch)
			}
		}
		require.Equal(t, 3, c.Stats().Whole)
		require.NoError(t, c.Stats().Err)
		require.NoError(t, c.Build(ctx))
		require.Positive(t, c.Stats().Bytes)
	}
	require.Equal(t, int64(500+2*3*500), read.Load(), "the others are the comparison's")
	require.Equal(t, []string{"0-of-3.cache", "1-of-3.cache", "2-of-3.cache"}, filesIn(t, directory))
}

func readAll(t require.TestingT, s stream.Stream[int], shard int, open *atomic.Int64) []event[int] {
	events := read(t, s, pass, shard)
	require.Zero(t, open.Load())
	return events
}

// Runs of two versions in one directory replace each other's files. Neither gets the other's
// values, though it knows the file of before, at the beginning and behind a mark.
func TestAFileThatAnotherVersionReplaces(t *testing.T) {
	var open atomic.Int64
	ours, theirs := count(&open, 0, 300, 1), count(&open, 1000, 300, 1)
	want, directory := readAll(t, ours, 0, &open), t.TempDir()
	replace := func() {
		require.NoError(t, stream.CacheFile(theirs, directory, "2", decimal, stream.FileCacheOptions{}).Build(ctx))
	}
	for _, given := range []int{0, 100, 299} {
		c := cacheFile(ours, directory)
		require.NoError(t, c.Build(ctx))
		r, err := c.Stream().Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		var item stream.Item[int]
		for range given {
			_, err := r.Next(ctx, &item)
			require.NoError(t, err)
		}
		mark, err := r.AppendMark(nil)
		require.NoError(t, err)
		replace()
		require.Equal(t, want[given:], drain(t, r, nil), "who has the file open reads on")
		require.NoError(t, r.Close())

		r, err = c.Stream().Open(ctx, pass, 0, mark)
		require.NoError(t, err)
		require.Equal(t, want[given:], drain(t, r, nil))
		require.NoError(t, r.Close())
		require.Contains(t, c.Stats().Reason, `made with version "2", this is "1"`)
		require.Equal(t, want, readAll(t, c.Stream(), 0, &open))
		require.NoError(t, c.Build(ctx))
		require.Equal(t, 1, c.Stats().Whole)
	}
}

// A shard's file is whole or absent: when it is left in the middle, when what is above takes
// only a part, and for the shards of other ranks. Build makes what is absent.
func TestAFileCacheIsWholeOrAbsent(t *testing.T) {
	var open atomic.Int64
	s, read := reads(&open, 40, 2)
	directory := t.TempDir()
	c := cacheFile(s, directory)
	for range 2 { // tried again
		r, err := c.Stream().Open(ctx, pass, 1, nil)
		require.NoError(t, err)
		_, _, _ = next(ctx, r)
		require.NoError(t, r.Close())
		require.Empty(t, filesIn(t, directory))
		require.Contains(t, c.Stats().Reason, "shard 1: it was left behind item 1")
	}
	require.Len(t, all(t, stream.Take(c.Stream(), 8), pass), 8)
	require.Empty(t, filesIn(t, directory))

	fields := []loader.Field{{Name: "x", DType: dtype.Int64}}
	encode := func(_ context.Context, n int, row *loader.Row) error { return loader.Write(row, "x", int64(n)) }
	l, err := loader.NewStream(stream.Encode(c.Stream(), fields, encode), 8, loader.Options{
		Epochs: 1, Last: loader.Drop, Shard: loader.Shard{Index: 0, Count: 2},
		Agree: func(_ context.Context, rows int, _ error) (int, int, error) { return rows, rows, nil },
	})
	require.NoError(t, err)
	mem, err := loader.NewHeap(l.Layout().Size(), 2)
	require.NoError(t, err)
	run := l.Start(ctx, loader.Cursor{}, mem)
	for batches := 0; ; batches++ {
		f, err := run.Next(ctx)
		if err != nil {
			require.ErrorIs(t, err, loader.ErrEpochEnd)
			require.Equal(t, 2, batches, "the tail is dropped")
			break
		}
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())
	require.Equal(t, []string{"0-of-2.cache"}, filesIn(t, directory))
	require.Equal(t, 1, c.Stats().Whole)

	read.Store(0)
	require.NoError(t, c.Build(ctx))
	require.Equal(t, int64(20), read.Load(), "the file that was there is not built again")
	require.Equal(t, 2, c.Stats().Whole)
	require.Equal(t, all(t, s, pass), all(t, c.Stream(), pass))
	require.Zero(t, open.Load())
}

// Marks go on with the files and without, whichever there were when they were taken; records
// that failed come again where they were.
func TestMarksOfFileCaches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var open atomic.Int64
		events := []any{}
		for n := range rapid.IntRange(0, 300).Draw(rt, "items") {
			if rapid.IntRange(0, 9).Draw(rt, "failure") == 0 {
				events = append(events, fmt.Errorf("%w %d", errBad, n))
			}
			events = append(events, n)
		}
		s := counted(&open, 1, func(loader.Pass, int) []any { return events })
		directory, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(rt, err)
		c := cacheFile(s, directory)
		want := outcomes(read(rt, s, pass, 0))
		stop := rapid.IntRange(0, len(want)).Draw(rt, "stop")
		marks := make(map[string][]byte)
		for _, when := range []string{"building", "whole", "in another process"} {
			if when == "in another process" {
				c = cacheFile(s, directory)
			}
			r, err := c.Stream().Open(ctx, pass, 0, nil)
			require.NoError(rt, err)
			for range stop {
				_, _, _ = next(ctx, r)
			}
			marks[when] = markOf(rt, r)
			require.Equal(rt, want[stop:], outcomes(drain(rt, r, nil)), when)
			require.NoError(rt, r.Close())
			require.Equal(rt, 1, c.Stats().Whole, c.Stats())
		}
		empty, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(rt, err)
		for when, mark := range marks {
			for where, c := range map[string]*stream.FileCache[int]{"files": c, "none": cacheFile(s, empty)} {
				r, err := c.Stream().Open(ctx, pass, 0, mark)
				require.NoError(rt, err)
				require.Equal(rt, want[stop:], outcomes(drain(rt, r, nil)), "%s, goes on with %s: %s", when, where, mark)
				require.NoError(rt, r.Close())
			}
		}
		require.Equal(rt, stop == 0, len(filesIn(rt, empty)) > 0, "a reader that begins in the middle makes no file")
		require.Zero(rt, open.Load())
	})
}

// A file of another version, other data, another number of shards, or a damaged one is built
// anew, and the reason told; one that is no cache is not touched.
func TestAFileOfSomethingElse(t *testing.T) {
	var open atomic.Int64
	base := stream.Fingerprinted(count(&open, 0, 300, 1), 7)
	path := func(directory string) string { return filepath.Join(directory, "0-of-1.cache") }
	damage := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			b[(at+len(b))%len(b)] ^= 0x40
			return b
		}
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		cache  func(directory string) *stream.FileCache[int]
		reason string
	}{
		"version": {nil, func(d string) *stream.FileCache[int] {
			return stream.CacheFile(base, d, "2", decimal, stream.FileCacheOptions{})
		}, `made with version "1", this is "2"`},
		"other data": {nil, func(d string) *stream.FileCache[int] { return cacheFile(stream.Fingerprinted(base, 8), d) }, "the fingerprint differs"},
		"cut off":    {func(b []byte) []byte { return b[:len(b)-1] }, nil, "cut off"},
		"header cut": {func(b []byte) []byte { return b[:20] }, nil, "cut off"},
		"index":      {damage(-20), nil, "index is damaged"},
		"a value":    {damage(400), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			require.NoError(t, cacheFile(base, directory).Build(ctx))
			if c.change != nil {
				b, err := os.ReadFile(path(directory))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path(directory), c.change(b), 0o600))
			}
			again := cacheFile(base, directory)
			if c.cache != nil {
				again = c.cache(directory)
			}
			require.Equal(t, readAll(t, base, 0, &open), readAll(t, again.Stream(), 0, &open))
			if c.reason != "" {
				require.Contains(t, again.Stats().Reason, c.reason)
			} else {
				var e *stream.CacheError
				require.ErrorAs(t, again.Stats().Err, &e)
				require.Equal(t, path(directory), e.Path)
			}
			require.NoError(t, again.Build(ctx))
			last := stream.CacheFile(base, directory, "1", decimal, stream.FileCacheOptions{})
			if c.cache == nil {
				require.NoError(t, last.Build(ctx))
				require.Zero(t, last.Stats().Reads, "it was built anew")
			}
			require.Len(t, filesIn(t, directory), 1)
		})
	}
	directory := t.TempDir()
	require.NoError(t, os.WriteFile(path(directory), []byte("a letter to somebody"), 0o600))
	c := cacheFile(base, directory)
	_, err := c.Stream().Open(ctx, pass, 0, nil)
	require.ErrorContains(t, err, "the file is no cache")
	require.ErrorContains(t, c.Build(ctx), "the file is no cache")
	b, err := os.ReadFile(path(directory))
	require.NoError(t, err)
	require.Equal(t, "a letter to somebody", string(b))
}

// A full disk, at any moment: values go on being read, and nothing is left.
func TestAFullDiskUnderAFileCache(t *testing.T) {
	var open atomic.Int64
	s := count(&open, 0, 20_000, 1)
	want := readAll(t, s, 0, &open)
	for fails := range 5 {
		directory := t.TempDir()
		restore := stream.FailWrites(fails, fs.ErrInvalid)
		c := cacheFile(s, directory)
		require.Equal(t, want, readAll(t, c.Stream(), 0, &open))
		require.ErrorIs(t, c.Stats().Err, fs.ErrInvalid)
		require.Zero(t, c.Stats().Bytes)
		require.ErrorIs(t, c.Build(ctx), fs.ErrInvalid)
		restore()
		require.Empty(t, filesIn(t, directory))
		require.NoError(t, c.Build(ctx), "it is tried again")
	}
	c := cacheFile(s, filepath.Join(t.TempDir(), "nowhere"))
	require.Equal(t, want, readAll(t, c.Stream(), 0, &open))
	require.ErrorIs(t, c.Stats().Err, fs.ErrNotExist)
}

func TestTheLimitOfAFileCache(t *testing.T) {
	var open atomic.Int64
	s := count(&open, 0, 3000, 3)
	directory := t.TempDir()
	one := cacheFile(s, directory)
	require.NoError(t, one.Build(ctx))
	whole := one.Stats().Bytes
	for _, directory := range []string{directory, t.TempDir()} { // found, and built
		c := stream.CacheFile(s, directory, "1", decimal, stream.FileCacheOptions{MaxBytes: whole * 3 / 4})
		for shard := range 3 {
			require.Equal(t, readAll(t, s, shard, &open), readAll(t, c.Stream(), shard, &open))
		}
		require.Equal(t, 2, c.Stats().Whole)
		require.LessOrEqual(t, c.Stats().Bytes, whole*3/4)
		require.Contains(t, c.Stats().Reason, "MaxBytes")
		require.ErrorContains(t, c.Build(ctx), "MaxBytes")
	}
}

// A limit that is reached anywhere, in the header of a file too, leaves files absent and values
// as they are.
func TestALimitReachedAnywhere(t *testing.T) {
	var open atomic.Int64
	s := count(&open, 0, 12, 2)
	whole := cacheFile(s, t.TempDir())
	require.NoError(t, whole.Build(ctx))
	want, most := all(t, s, pass), whole.Stats().Bytes
	for limit := int64(1); limit <= most; limit++ {
		c := stream.CacheFile(s, t.TempDir(), "1", decimal, stream.FileCacheOptions{MaxBytes: limit})
		require.Equal(t, want, all(t, c.Stream(), pass), "limit %d", limit)
		require.LessOrEqual(t, c.Stats().Bytes, limit)
		if limit < most {
			require.Less(t, c.Stats().Whole, 2)
			require.Contains(t, c.Stats().Reason, "MaxBytes is reached")
			require.ErrorContains(t, c.Build(ctx), "MaxBytes is reached")
		} else {
			require.Equal(t, 2, c.Stats().Whole)
		}
	}
}

// Temporary failures, values that can't be written, and panics leave no file.
func TestWhatCantBeKept(t *testing.T) {
	var open atomic.Int64
	s := count(&open, 0, 10, 1)
	for name, c := range map[string]struct {
		s      stream.Stream[int]
		format stream.Format[int]
	}{
		"temporary": {stream.Map(s, func(_ context.Context, n int) (int, error) { return n, map[bool]error{true: busy{}}[n == 5] }), decimal},
		"append": {s, stream.Format[int]{Parse: decimal.Parse, Append: func(dst []byte, n int) ([]byte, error) {
			return dst, errBad
		}}},
		"panic": {s, stream.Format[int]{Parse: decimal.Parse, Append: func(dst []byte, n int) ([]byte, error) { panic(errBad) }}},
	} {
		directory := t.TempDir()
		cache := stream.CacheFile(c.s, directory, "1", c.format, stream.FileCacheOptions{})
		require.Equal(t, outcomes(read(t, c.s, pass, 0)), outcomes(read(t, cache.Stream(), pass, 0)), name)
		require.Error(t, cache.Build(ctx), name)
		require.Empty(t, filesIn(t, directory), name)
	}
	require.Zero(t, open.Load())
	s = stream.CacheFile(s, "", "", stream.Format[int]{}, stream.FileCacheOptions{MaxBytes: -1}).Stream()
	require.Len(t, strings.Split(s.Err().Error(), "\n"), 5)
	var option *loader.OptionError
	require.ErrorAs(t, s.Err(), &option)
}

// Several readers of a shard, and several caches of a directory, build at once.
func TestSeveralFileCachesAtOnce(t *testing.T) {
	var open atomic.Int64
	s := count(&open, 0, 2000, 2)
	directory := t.TempDir()
	want := [][]event[int]{read(t, s, pass, 0), read(t, s, pass, 1)}
	var group sync.WaitGroup
	caches := []*stream.FileCache[int]{cacheFile(s, directory), cacheFile(s, directory)}
	for i := range 8 {
		group.Go(func() {
			for shard := range 2 {
				require.Equal(t, want[shard], read(t, caches[i%2].Stream(), pass, shard))
			}
		})
	}
	group.Wait()
	require.Zero(t, open.Load())
	require.Equal(t, []string{"0-of-2.cache", "1-of-2.cache"}, filesIn(t, directory))
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errBad)
	require.ErrorIs(t, cacheFile(s, t.TempDir()).Build(gone), errBad)
}

// A mark that a file gives is of a place of the stream below too, so that without the file no
// more than a few values are read again; and the file is entered near the place.
func TestPlacesOfAFileCache(t *testing.T) {
	var open atomic.Int64
	s, read := reads(&open, 5000, 1)
	c := cacheFile(s, t.TempDir())
	require.NoError(t, c.Build(ctx))
	mark := far(t, c.Stream(), 4000)
	read.Store(0)
	r, err := cacheFile(s, t.TempDir()).Stream().Open(ctx, pass, 0, mark)
	require.NoError(t, err)
	require.LessOrEqual(t, read.Load(), int64(64))
	item, _, err := next(ctx, r)
	require.NoError(t, err)
	require.Equal(t, 4000, item.Value)
	require.NoError(t, r.Close())
}

// Of several readers at once one builds the file.
func TestOneReaderBuilds(t *testing.T) {
	var open atomic.Int64
	directory := t.TempDir()
	c := cacheFile(count(&open, 0, 10, 1), directory)
	var readers []stream.Reader[int]
	for range 3 {
		r, err := c.Stream().Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		_, _, err = next(ctx, r)
		require.NoError(t, err)
		readers = append(readers, r)
	}
	require.Len(t, filesIn(t, directory), 1)
	require.Contains(t, c.Stats().Reason, "another reader builds the file")
	for _, r := range readers {
		require.NoError(t, r.Close())
	}
	require.Empty(t, filesIn(t, directory))
	require.Zero(t, open.Load())
}

// The place of a record that failed is kept with its text, and a file of another shard is
// refused.
func TestFailuresOfAFileCacheKeepTheirOrigin(t *testing.T) {
	var open atomic.Int64
	directory := t.TempDir()
	s := stream.Map(count(&open, 0, 10, 2), func(_ context.Context, n int) (int, error) {
		if n == 4 {
			return 0, errBad
		}
		return n, nil
	})
	want := read(t, s, pass, 0)
	require.NoError(t, cacheFile(s, directory).Build(ctx))
	got := read(t, cacheFile(s, directory).Stream(), pass, 0)
	require.Equal(t, outcomes(want), outcomes(got))
	var from loader.Located
	require.ErrorAs(t, got[2].err, &from)
	require.Equal(t, loader.Origin{File: "numbers", Record: 4}, from.Origin())

	require.NoError(t, os.Rename(filepath.Join(directory, "0-of-2.cache"), filepath.Join(directory, "1-of-2.cache")))
	c := cacheFile(s, directory)
	require.Equal(t, read(t, s, pass, 1), read(t, c.Stream(), pass, 1))
	require.Contains(t, c.Stats().Reason, "the file is of shard 0 of 2")
}

// Build ends with what is wrong: a mistake in the making, or a reader that is broken.
func TestBuildEndsWhereNothingGoesOn(t *testing.T) {
	var open atomic.Int64
	numbers := count(&open, 0, 10, 1)
	broken := stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
		r, err := numbers.Open(ctx, pass, shard, mark)
		return &stopping{Reader: r}, err
	})
	directory := t.TempDir()
	require.ErrorIs(t, cacheFile(broken, directory).Build(ctx), errBad)
	require.Empty(t, filesIn(t, directory))
	require.Zero(t, open.Load())
	require.ErrorContains(t, stream.CacheFile(numbers, directory, "", decimal, stream.FileCacheOptions{}).Build(ctx), "version")
	exact := cacheFile(numbers, directory)
	require.NoError(t, exact.Build(ctx))
	again := stream.CacheFile(numbers, directory, "1", decimal, stream.FileCacheOptions{MaxBytes: exact.Stats().Bytes})
	require.NoError(t, again.Build(ctx))
	require.Equal(t, 1, again.Stats().Whole)
}

// Whatever byte of a file is damaged, and wherever it is cut off, the values are those of the
// stream, with their origins; and the file is whole afterwards, or was never one of ours.
func TestEveryDamageToAFile(t *testing.T) {
	s := stream.Map(stream.Lines(files("one\ntwo\n\nfour\n"), stream.LinesOptions{}), nil2(func(line []byte) int { return len(line) }))
	directory := t.TempDir()
	path := filepath.Join(directory, "0-of-1.cache")
	require.NoError(t, cacheFile(s, directory).Build(ctx))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	want := read(t, s, pass, 0)
	require.EqualValues(t, 4, want[3].item.Origin.Line)
	try := func(damaged []byte, what string, at int) {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		c := cacheFile(s, directory)
		r, err := c.Stream().Open(ctx, pass, 0, nil)
		if err != nil {
			require.ErrorContains(t, err, "the file is no cache", "%s at %d", what, at)
			require.Less(t, at, len("leat shard 2\n"), what)
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, damaged, left, "it may be somebody's")
			return
		}
		require.Equal(t, want, drain(t, r, nil), "%s at %d", what, at)
		require.NoError(t, r.Close())
		again := cacheFile(s, directory)
		require.NoError(t, again.Build(ctx), "%s at %d", what, at)
		require.NoError(t, again.Build(ctx))
		require.Equal(t, want, read(t, again.Stream(), pass, 0), "%s at %d", what, at)
		require.Len(t, filesIn(t, directory), 1)
	}
	for at := range whole {
		try(whole[:at], "cut off", at)
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1 << (at % 8)
		try(damaged, "a bit flipped", at)
	}
	try(append(append([]byte(nil), whole...), 0), "a byte more", len(whole))
}
