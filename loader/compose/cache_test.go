package compose_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// counted is a dataset of numbers that counts how often each is read.
type counted struct {
	loader.Dataset
	reads []atomic.Int64
	of    uint64 // its fingerprint
}

func newCounted(numbers ...int64) *counted {
	return &counted{Dataset: values(numbers...), reads: make([]atomic.Int64, len(numbers))}
}

func (c *counted) Fingerprint() uint64 { return c.of }

func (c *counted) Read(ctx context.Context, index int, row *loader.Row) error {
	c.reads[index].Add(1)
	return c.Dataset.Read(ctx, index, row)
}

// requireReads asserts how often each sample was read.
func (c *counted) requireReads(t *testing.T, times int64) {
	t.Helper()
	for i := range c.reads {
		require.Equal(t, times, c.reads[i].Load(), "sample %d", i)
	}
}

// through reads some epochs in batches of 4, without what fills none, with a break after a
// number of steps.
func through(t *testing.T, ds loader.Dataset, n, steps int) (read []int64) {
	ld, err := loader.New(ds, 4, loader.Options{Epochs: n, Workers: 3, Last: loader.Drop, Shuffle: true})
	require.NoError(t, err)
	all, _ := epochs(t, ld, loader.Cursor{}, steps)
	return slices.Concat(all...)
}

// sampleBytes is what a sample of values takes in a cache, and in a MemoryCache with its
// length.
const sampleBytes = 8

func TestAMemoryCacheReadsEachSampleOnce(t *testing.T) {
	ds := newCounted(upTo(100, 10)...)
	c, err := compose.CacheMemory(ds, 1<<20)
	require.NoError(t, err)
	require.Len(t, through(t, c, 3, math.MaxInt), 24)
	for _, epoch := range contents(t, c, 2) {
		require.Equal(t, upTo(100, 10), epoch)
	}
	require.Len(t, contents(t, must(compose.Take(c, 8)), 1)[0], 8)
	ds.requireReads(t, 1)
	require.Equal(t, compose.CacheStats{Held: 10, Samples: 10, Bytes: 10 * sampleBytes, Reads: 10}, c.Stats())
}

func TestAMemoryCacheKeepsToItsLimit(t *testing.T) {
	for _, room := range []int64{0, 1, 15, 16, 17, 33, 160} {
		ds := newCounted(upTo(100, 10)...)
		c, err := compose.CacheMemory(ds, 80+room)
		require.NoError(t, err)
		for range 3 {
			require.Equal(t, upTo(100, 10), contents(t, c, 1)[0])
		}
		held := int(min(room/16, 10)) // 8 bytes of length and 8 of the sample
		require.Equal(t, held, c.Stats().Held)
		require.EqualValues(t, held+3*(10-held), c.Stats().Reads, "what has no room is read each time")
	}
	_, err := compose.CacheMemory(newCounted(1, 2), 15)
	require.ErrorContains(t, err, "maxBytes is 15, want 16")
	_, err = compose.CacheMemory(nil, -1)
	require.ErrorContains(t, err, "CacheMemory: ds")
	require.ErrorContains(t, err, "maxBytes is -1")
}

// Samples of which a slab holds one, or that are larger than one.
func TestAMemoryCacheOfLargeSamples(t *testing.T) {
	for _, size := range []int{700 << 10, 3 << 20} {
		fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{size}}}
		ds := loader.FromFunc(4, fields, func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "x", bytes.Repeat([]byte{byte(i + 1)}, size)...)
		})
		c, err := compose.CacheMemory(ds, int64(4*max(size+8, 1<<20)+32))
		require.NoError(t, err)
		s, err := loader.NewScratch(fields)
		require.NoError(t, err)
		for range 2 {
			for i := range 4 {
				row := s.Begin(new(loader.Row))
				require.NoError(t, c.Read(t.Context(), i, row))
				require.Equal(t, bytes.Repeat([]byte{byte(i + 1)}, size), loader.Value[byte](row, "x"))
			}
		}
		require.Equal(t, compose.CacheStats{Held: 4, Samples: 4, Bytes: int64(4 * size), Reads: 4}, c.Stats())
	}
}

func TestAFailureIsNotCached(t *testing.T) {
	fails := true
	ds := loader.FromFunc(1, xField, func(_ context.Context, _ int, row *loader.Row) error {
		if fails {
			return passing(true)
		}
		return loader.Write(row, "x", int64(5))
	})
	memory, err := compose.CacheMemory(ds, 1000)
	require.NoError(t, err)
	file, err := compose.CacheFile(ds, filepath.Join(t.TempDir(), "c"), "1")
	require.NoError(t, err)
	for _, c := range []loader.Dataset{memory, file} {
		s, err := loader.NewScratch(xField)
		require.NoError(t, err)
		fails = true
		require.ErrorIs(t, c.Read(t.Context(), 0, s.Begin(new(loader.Row))), passing(true))
		fails = false
		require.Equal(t, [][]int64{{5}, {5}}, contents(t, c, 2))
		require.ErrorAs(t, c.Read(t.Context(), 1, s.Begin(new(loader.Row))), new(*compose.IndexError))
	}
	require.NoError(t, file.Close())
}

// Samples that differ in length are kept with theirs.
func TestCachesKeepLengths(t *testing.T) {
	ragged := []loader.Field{{Name: "tokens", DType: dtype.Uint16, Shape: []int{9}, Ragged: &loader.Ragged{}}}
	words := loader.FromFunc(10, ragged, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "tokens", slices.Repeat([]uint16{uint16(i)}, i)...)
	})
	sum := func(ds loader.Dataset) loader.Dataset {
		return must(compose.Map(ds, xField, func(_ context.Context, in, out *loader.Row) error {
			sum := int64(0)
			for _, token := range loader.Value[uint16](in, "tokens") {
				sum += int64(token)
			}
			return loader.Write(out, "x", sum)
		}))
	}
	memory, err := compose.CacheMemory(words, 1<<20)
	require.NoError(t, err)
	file, err := compose.CacheFile(words, filepath.Join(t.TempDir(), "c"), "1")
	require.NoError(t, err)
	squares := []int64{0, 1, 4, 9, 16, 25, 36, 49, 64, 81}
	for _, c := range []loader.Dataset{memory, file} {
		require.Equal(t, [][]int64{squares, squares, squares}, contents(t, sum(c), 3))
	}
	require.NoError(t, file.Close())
}

// names are the files of a directory.
func names(t *testing.T, directory string) (all []string) {
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestAFileCacheIsWholeOrAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		steps int
		build bool
		whole bool
	}{
		"three epochs without the tail": {steps: math.MaxInt, whole: true}, // the tail is another in each
		"a break":                       {steps: 1},
		"a break, and Build":            {steps: 1, build: true, whole: true},
		"nothing":                       {},
		"nothing but Build":             {build: true, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			path := filepath.Join(directory, "cache")
			ds := newCounted(upTo(100, 10)...)
			cache, err := compose.CacheFile(ds, path, "")
			require.NoError(t, err)
			if c.steps > 0 {
				through(t, cache, 3, c.steps)
			}
			if c.build {
				require.NoError(t, cache.Build(t.Context()))
				require.Equal(t, compose.FileStats{CacheStats: compose.CacheStats{Held: 10, Samples: 10, Bytes: 80, Reads: 10}, Whole: true}, cache.Stats())
				require.NoError(t, cache.Build(t.Context()))
			}
			if c.whole {
				require.Equal(t, upTo(100, 10), contents(t, cache, 1)[0])
				ds.requireReads(t, 1)
			}
			require.NoError(t, cache.Close())
			require.NoError(t, cache.Close())
			if !c.whole {
				require.Empty(t, names(t, directory))
				return
			}
			require.Equal(t, []string{"cache"}, names(t, directory))
			again, err := compose.CacheFile(ds, path, "")
			require.NoError(t, err)
			require.Equal(t, [][]int64{upTo(100, 10), upTo(100, 10)}, contents(t, again, 2))
			ds.requireReads(t, 1)
			require.True(t, again.Stats().Whole)
			require.Equal(t, 10, again.Stats().Held)
			require.NoError(t, again.Build(t.Context()))
			require.NoError(t, again.Close())
			require.Equal(t, []string{"cache"}, names(t, directory))
		})
	}
}

// What a killed process leaves blocks nobody, and goes when it is old.
func TestWhatAKilledBuilderLeavesIsNoHindrance(t *testing.T) {
	directory := t.TempDir()
	for name, age := range map[string]time.Duration{"cache.1.building": time.Hour, "cache.2.building": 48 * time.Hour, "cache.old": 48 * time.Hour, "other.1.building": 48 * time.Hour} {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, []byte("leat"), 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	cache, err := compose.CacheFile(newCounted(1, 2, 3), filepath.Join(directory, "cache"), "")
	require.NoError(t, err)
	require.NoError(t, cache.Build(t.Context()))
	require.NoError(t, cache.Close())
	require.Equal(t, []string{"cache", "cache.1.building", "cache.old", "other.1.building"}, names(t, directory))
}

func TestSeveralMayBuildAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	ds := newCounted(upTo(0, 500)...)
	var builders sync.WaitGroup
	for range 4 {
		cache, err := compose.CacheFile(ds, path, "")
		require.NoError(t, err)
		for range 2 {
			builders.Go(func() {
				if err := cache.Build(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		builders.Go(func() {
			if got := contents(t, cache, 2); !slices.Equal(got[1], upTo(0, 500)) {
				t.Error("other contents")
			}
		})
		defer cache.Close()
	}
	builders.Wait()
	require.Equal(t, []string{"cache"}, names(t, filepath.Dir(path)))
}

// A file that was made of something else is never served: it is built anew, with the reason.
func TestAFileOfSomethingElseIsBuiltAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	first := newCounted(upTo(0, 10)...)
	build := func(ds loader.Dataset, version string) (reason string) {
		c, err := compose.CacheFile(ds, path, version)
		require.NoError(t, err)
		require.Equal(t, c.Stats().Reason == "", c.Stats().Whole)
		require.NoError(t, c.Build(t.Context()))
		require.Equal(t, contents(t, ds, 1), contents(t, c, 1))
		require.NoError(t, c.Close())
		return c.Stats().Reason
	}
	c, err := compose.CacheFile(first, path, "1")
	require.NoError(t, err)
	require.NoError(t, c.Build(t.Context()))
	require.NoError(t, c.Close())
	require.Empty(t, build(first, "1"))
	require.Equal(t, `it was made with version "1", this is "2"`, build(first, "2"))
	other := newCounted(upTo(5, 10)...)
	other.of = 7
	require.Equal(t, "it was made of other data: the fingerprint differs", build(other, "2"))
	require.Equal(t, "it has 10 samples, the dataset 11", build(newCounted(upTo(0, 11)...), "2"))
	pair := must(compose.Zip(newCounted(upTo(0, 11)...), column("y", upTo(0, 11)...)))
	require.Equal(t, "its samples have x int64, these have x int64, y int64", build(pair, "2"))
	require.Contains(t, build(must(compose.Take(pair, 11)), "2"), "the fingerprint differs")
}

func TestADamagedFileIsBuiltAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	whole := func() []byte {
		c, err := compose.CacheFile(newCounted(upTo(0, 10)...), path, "")
		require.NoError(t, err)
		require.NoError(t, c.Build(t.Context()))
		require.NoError(t, c.Close())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return b
	}()
	change := func(at int, b byte) []byte {
		bad := slices.Clone(whole)
		bad[at] = b
		return bad
	}
	for name, bad := range map[string][]byte{
		"half": whole[:len(whole)/2], "one byte less": whole[:len(whole)-1], "one more": append(slices.Clone(whole), 0),
		"the magic cut": whole[:5], "the header cut": whole[:20], "a huge header": change(15, 0xff), "no JSON": change(16, '!'),
	} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		ds := newCounted(upTo(0, 10)...)
		c, err := compose.CacheFile(ds, path, "")
		require.NoError(t, err, name)
		require.NotEmpty(t, c.Stats().Reason, name)
		require.NoError(t, c.Build(t.Context()), name)
		require.Equal(t, upTo(0, 10), contents(t, c, 1)[0], name)
		ds.requireReads(t, 1)
		require.NoError(t, c.Close())
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole, now, name)
	}
	// A damaged sample is read of the dataset.
	require.NoError(t, os.WriteFile(path, change(4096+3*24+16, 0xff), 0o600))
	ds := newCounted(upTo(0, 10)...)
	c, err := compose.CacheFile(ds, path, "")
	require.NoError(t, err)
	require.Equal(t, upTo(0, 10), contents(t, c, 1)[0])
	require.EqualValues(t, 1, c.Stats().Reads)
	require.ErrorContains(t, c.Stats().Err, "sample 3: its checksum")
	require.NoError(t, c.Close())
	// So is one that is said to be huge.
	require.NoError(t, os.WriteFile(path, change(4096+3*24+7, 0xff), 0o600))
	c, err = compose.CacheFile(ds, path, "")
	require.NoError(t, err)
	require.Equal(t, upTo(0, 10), contents(t, c, 1)[0])
	require.EqualValues(t, 1, c.Stats().Reads)
	require.NoError(t, c.Close())
	// So is one at another's place.
	swapped := slices.Concat(whole[:4096], whole[4096+24:4096+48], whole[4096:4096+24], whole[4096+48:])
	require.NoError(t, os.WriteFile(path, swapped, 0o600))
	c, err = compose.CacheFile(ds, path, "")
	require.NoError(t, err)
	require.Equal(t, upTo(0, 10), contents(t, c, 1)[0])
	require.EqualValues(t, 2, c.Stats().Reads)
	require.NoError(t, c.Close())
}

func TestAFileThatIsNoCacheIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	for _, contents := range []string{"", "x", "leather goods", "something that was not made by a cache"} {
		require.NoError(t, os.WriteFile(path, []byte(contents), 0o600))
		_, err := compose.CacheFile(newCounted(1), path, "")
		var refused *compose.CacheError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "is no cache")
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, contents, string(got))
	}
	_, err := compose.CacheFile(newCounted(1), t.TempDir(), "")
	require.ErrorContains(t, err, "is no cache")
}

// Where the disk is full samples are read as if there were no cache, and the reason told.
func TestAFullDisk(t *testing.T) {
	for _, room := range []int64{0, 1, 5} {
		var written atomic.Int64
		defer compose.SetWriteAt(func(f *os.File, b []byte, at int64) (int, error) {
			if written.Add(1) > room {
				return 0, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
			}
			return f.WriteAt(b, at)
		})()
		directory := t.TempDir()
		ds := newCounted(upTo(0, 10)...)
		c, err := compose.CacheFile(ds, filepath.Join(directory, "cache"), "")
		require.NoError(t, err)
		require.Equal(t, [][]int64{upTo(0, 10), upTo(0, 10)}, contents(t, c, 2))
		var full *compose.CacheError
		require.ErrorAs(t, c.Stats().Err, &full)
		require.ErrorIs(t, full, syscall.ENOSPC)
		require.ErrorIs(t, c.Build(t.Context()), syscall.ENOSPC)
		require.Zero(t, c.Stats().Held)
		require.Empty(t, names(t, directory), "nothing is left")
		require.NoError(t, c.Close())
	}
	c, err := compose.CacheFile(newCounted(upTo(0, 10)...), filepath.Join(t.TempDir(), "no", "directory"), "")
	require.NoError(t, err)
	require.ErrorIs(t, c.Build(t.Context()), os.ErrNotExist)
	require.Equal(t, upTo(0, 10), contents(t, c, 1)[0])
	require.NoError(t, c.Close())
}

// Where the file can't get its name samples are read as if there were no cache.
func TestAFileThatCannotBePutInPlace(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "cache")
	ds := newCounted(upTo(0, 10)...)
	c, err := compose.CacheFile(ds, path, "")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(path, 0o700))
	var failed *compose.CacheError
	require.ErrorAs(t, c.Build(t.Context()), &failed)
	require.Equal(t, path, failed.Path)
	require.False(t, c.Stats().Whole)
	require.Equal(t, []string{"cache"}, names(t, directory))
	require.Equal(t, upTo(0, 10), contents(t, c, 1)[0])
	require.NoError(t, c.Close())
}

func TestACacheInTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := compose.CacheFile(newCounted(1, 2), "cache", "")
	require.NoError(t, err)
	require.NoError(t, c.Build(t.Context()))
	require.NoError(t, c.Close())
	require.Equal(t, []string{"cache"}, names(t, "."))
}

func TestBuildTellsWhichSampleFails(t *testing.T) {
	bad := errors.New("bad")
	ds := loader.FromFunc(300, xField, func(_ context.Context, i int, row *loader.Row) error {
		if i == 277 {
			panic(bad)
		}
		return loader.Write(row, "x", int64(i))
	})
	directory := t.TempDir()
	c, err := compose.CacheFile(ds, filepath.Join(directory, "cache"), "1")
	require.NoError(t, err)
	var at *loader.Error
	require.ErrorAs(t, c.Build(t.Context()), &at)
	require.Equal(t, 277, at.Sample)
	require.ErrorIs(t, at, bad)
	require.NoError(t, c.Close())
	require.Empty(t, names(t, directory))
	require.ErrorIs(t, c.Build(t.Context()), os.ErrClosed)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(bad)
	c, err = compose.CacheFile(newCounted(1, 2), filepath.Join(directory, "cache"), "1")
	require.NoError(t, err)
	require.ErrorIs(t, c.Build(ctx), bad)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Build(t.Context()), os.ErrClosed)
}

func TestEmptyDatasetsAreCached(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c, err := compose.CacheFile(newCounted(), path, "")
	require.NoError(t, err)
	require.NoError(t, c.Build(t.Context()))
	require.NoError(t, c.Close())
	c, err = compose.CacheFile(newCounted(), path, "")
	require.NoError(t, err)
	require.True(t, c.Stats().Whole)
	require.NoError(t, c.Close())
}

func TestMisuseOfFileCaches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	ten := newCounted(upTo(0, 10)...)
	if strconv.IntSize == 32 {
		t.Skip("no dataset is too long for a file where an int has 32 bits")
	}
	tooMany := []string{"samples below 4 GiB, and fewer of them"}
	for name, c := range map[string]struct {
		ds            loader.Dataset
		path, version string
		want          []string
	}{
		"nothing":             {nil, "", "", []string{"CacheFile: ds", "path is empty"}},
		"no fingerprint":      {values(1), path, "", []string{"version is empty"}},
		"no fingerprint deep": {must(compose.Concat(ten, must(compose.Take(values(1), 1)))), path, "", []string{"version is empty"}},
		"a function":          {must(compose.Take(must(compose.Map(ten, xField, plus(1))), 3)), path, "", []string{"version is empty"}},
		"too many":            {endless{ten}, path, "1", tooMany},
		"a long version":      {ten, path, strings.Repeat("v", 2<<20), []string{"bytes with the fields, want at most"}},
		"another order":       {must(compose.Shuffle(ten, 1)), path, "1", []string{"stay at their indices"}},
	} {
		_, err := compose.CacheFile(c.ds, c.path, c.version)
		require.ErrorAs(t, err, new(*loader.OptionError), name)
		for _, part := range c.want {
			require.ErrorContains(t, err, part, name)
		}
	}
	c, err := compose.CacheFile(must(compose.Concat(ten, must(compose.Take(ten, 1)))), path, "")
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// Whatever is done at once with a cache, it ends, and the file is whole or absent.
func TestACacheIsClosedWhileItIsBuilt(t *testing.T) {
	for i := range 30 {
		directory := t.TempDir()
		c, err := compose.CacheFile(newCounted(upTo(0, 200)...), filepath.Join(directory, "cache"), "")
		require.NoError(t, err)
		var users sync.WaitGroup
		users.Go(func() {
			if err := c.Build(context.Background()); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		})
		users.Go(func() {
			if got := contents(t, c, 1); !slices.Equal(got[0], upTo(0, 200)) {
				t.Error("other contents")
			}
		})
		users.Go(func() {
			for range i * 20 {
				runtime.Gosched()
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		users.Wait()
		if left := names(t, directory); len(left) > 0 {
			require.Equal(t, []string{"cache"}, left)
			again, err := compose.CacheFile(newCounted(upTo(0, 200)...), filepath.Join(directory, "cache"), "")
			require.NoError(t, err)
			require.True(t, again.Stats().Whole)
			require.NoError(t, again.Close())
		}
	}
}
