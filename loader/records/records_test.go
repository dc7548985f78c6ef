package records_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/loader/records"
	"github.com/leat-go/leat/loader/source"
)

// twoFields are a number and so many bytes, each its number.
func twoFields(width int) []loader.Field {
	return []loader.Field{{Name: "number", DType: dtype.Int32}, {Name: "bytes", DType: dtype.Uint8, Shape: []int{width}}}
}

// write makes files of records of twoFields, which are numbered over all files.
func write(t require.TestingT, folder string, o records.Options, width int, counts ...int) []source.Source {
	var files []source.Source
	n := 0
	for i, count := range counts {
		data := make([]byte, o.Header)
		for range count {
			record := make([]byte, max(int(o.Stride), 4+width))
			binary.LittleEndian.PutUint32(record, uint32(n))
			for k := range width {
				record[4+k] = byte(n)
			}
			data, n = append(data, record...), n+1
		}
		path := filepath.Join(folder, fmt.Sprintf("%d.bin", i))
		require.NoError(t, os.WriteFile(path, data, 0o600))
		files = append(files, source.Path(path))
	}
	return files
}

// Every record is read whole, once, from wherever it lies, and says where that is.
func TestRecords(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{0, 1, 3, 784, 20_000}).Draw(t, "width")
		o := records.Options{
			Header: rapid.SampledFrom([]int64{0, 1, 16}).Draw(t, "header"),
			Stride: rapid.SampledFrom([]int64{0, int64(4 + width), int64(4 + width + 5)}).Draw(t, "stride"),
			Mapped: rapid.Bool().Draw(t, "mapped"),
		}
		counts := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 4).Draw(t, "counts")
		total := 0
		for _, n := range counts {
			total += n
		}
		data, err := records.Open(t.Context(), write(t, folder, o, width, counts...), twoFields(width), o)
		require.NoError(t, err)
		defer func() { require.NoError(t, data.Close()) }()
		require.Equal(t, total, data.Len())
		if total == 0 {
			return
		}
		ld, err := loader.New(data, 3, loader.Options{Shuffle: true, Epochs: 1, Workers: 3})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 2)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		seen := make(map[int32]bool)
		for {
			b, err := run.Next(t.Context())
			if err == loader.ErrEpochEnd {
				break
			}
			require.NoError(t, err)
			numbers, bytes := dtype.As[int32](ld.Layout().Rows(0, b)), ld.Layout().Rows(1, b)
			for i, n := range numbers {
				require.Equal(t, ld.Order(0).At(b.Position+int64(i)), int(n))
				seen[n] = true
				for _, x := range bytes[i*width : (i+1)*width] {
					require.Equal(t, byte(n), x)
				}
			}
			mem.Put(b.Slot)
		}
		require.NoError(t, run.Close())
		require.Len(t, seen, total)
		i := 0
		for file, count := range counts {
			for record := range count {
				stride := max(o.Stride, int64(4+width))
				require.Equal(t, loader.Origin{
					File: filepath.Join(folder, fmt.Sprintf("%d.bin", file)), Record: int64(record), Offset: o.Header + int64(record)*stride,
				}, data.Origin(i))
				i++
			}
		}
	})
}

func TestMistakes(t *testing.T) {
	one := write(t, t.TempDir(), records.Options{}, 3, 2)
	ragged := []loader.Field{{Name: "text", DType: dtype.Uint8, Shape: []int{9}, Ragged: &loader.Ragged{}}}
	for want, c := range map[string]struct {
		files  []source.Source
		fields []loader.Field
		o      records.Options
	}{
		"records: files is empty":                                                            {nil, twoFields(3), records.Options{}},
		"loader: Fields is empty, want at least one field":                                   {one, nil, records.Options{}},
		"records: fields[0] (text) is ragged, want a field of on":                            {one, ragged, records.Options{}},
		"records: fields is all of them empty":                                               {one, []loader.Field{{Name: "x", Shape: []int{0}, DType: dtype.Int8}}, records.Options{}},
		"records: Header is -1":                                                              {one, twoFields(3), records.Options{Header: -1}},
		"records: Stride is 6, want 0 (one behind the other) or at least a record's 7 bytes": {one, twoFields(3), records.Options{Stride: 6}},
	} {
		_, err := records.Open(t.Context(), c.files, c.fields, c.o)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*loader.OptionError), want)
	}
	for _, c := range []struct {
		o     records.Options
		width int
	}{{records.Options{}, 4}, {records.Options{Header: 1}, 3}, {records.Options{Header: 28}, 3}, {records.Options{Header: 15}, 3}, {records.Options{Stride: 8}, 3}} {
		_, err := records.Open(t.Context(), one, twoFields(c.width), c.o)
		var size *records.SizeError
		require.ErrorAs(t, err, &size)
		require.Equal(t, one[0].Name(), size.File)
		require.EqualValues(t, 14, size.Size)
		require.ErrorContains(t, err, "has 14 bytes, want a header of ")
	}
	_, err := records.Open(t.Context(), append(one, source.Path("missing")), twoFields(3), records.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A file that has become shorter costs the records that are gone, by file and offset.
func TestAFileThatIsTruncated(t *testing.T) {
	for _, o := range []records.Options{{}, {Mapped: true}} {
		for _, width := range []int{3, 20_000} {
			folder := t.TempDir()
			data, err := records.Open(t.Context(), write(t, folder, o, width, 3), twoFields(width), o)
			require.NoError(t, err)
			path := filepath.Join(folder, "0.bin")
			require.NoError(t, os.Truncate(path, int64(2*(4+width)+1)))
			scratch, err := loader.NewScratch(data.Fields())
			require.NoError(t, err)
			require.NoError(t, data.Read(t.Context(), 1, scratch.Begin(new(loader.Row))))
			err = data.Read(t.Context(), 2, scratch.Begin(new(loader.Row)))
			var where *source.Error
			require.ErrorAs(t, err, &where)
			require.ErrorIs(t, err, source.ErrChanged)
			require.Equal(t, path, where.Source)
			require.NoError(t, data.Close())
			require.ErrorIs(t, data.Read(t.Context(), 0, scratch.Begin(new(loader.Row))), fs.ErrClosed)
			require.NoError(t, data.Close())
		}
	}
}

// A state of other files, or of other places in them, is refused.
func TestAStateIsOfTheseRecords(t *testing.T) {
	state := func(o records.Options, counts ...int) uint64 {
		data, err := records.Open(t.Context(), write(t, t.TempDir(), o, 3, counts...), twoFields(3), o)
		require.NoError(t, err)
		defer data.Close()
		return data.Fingerprint()
	}
	same := state(records.Options{}, 2, 3)
	require.Equal(t, same, state(records.Options{Mapped: true}, 2, 3), "in another folder, mapped")
	require.NotEqual(t, same, state(records.Options{}, 3, 2))
	require.NotEqual(t, same, state(records.Options{Header: 7}, 2, 3))
	require.NotEqual(t, state(records.Options{Header: 7}, 1), state(records.Options{}, 2))
}

// Reading a record allocates nothing.
func TestReadingAllocatesNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts its own allocations")
	}
	for _, o := range []records.Options{{}, {Mapped: true}} {
		for _, width := range []int{3, 20_000} {
			data, err := records.Open(t.Context(), write(t, t.TempDir(), o, width, 3), twoFields(width), o)
			require.NoError(t, err)
			scratch, err := loader.NewScratch(data.Fields())
			require.NoError(t, err)
			row, ctx := scratch.Begin(new(loader.Row)), context.Background()
			require.Less(t, testing.AllocsPerRun(1000, func() { err = errors.Join(err, data.Read(ctx, 1, row)) }), 1.0)
			require.NoError(t, err)
			require.NoError(t, data.Close())
		}
	}
}

// bad are records of which one can't be decoded.
type bad struct {
	*records.Dataset
	index int
}

func (b bad) Read(ctx context.Context, index int, row *loader.Row) error {
	if index == b.index {
		return errors.New("no such label")
	}
	return b.Dataset.Read(ctx, index, row)
}

// A failure names the file and the offset of the record, below compositions too.
func TestAFailureNamesTheRecord(t *testing.T) {
	folder := t.TempDir()
	data, err := records.Open(t.Context(), write(t, folder, records.Options{}, 3, 4, 4), twoFields(3), records.Options{})
	require.NoError(t, err)
	defer data.Close()
	last, err := compose.Skip(bad{data, 5}, 3)
	require.NoError(t, err)
	for _, o := range []loader.Options{{}, {Exclude: []loader.Exclusion{{Samples: []int{0}}}}} {
		ld, err := loader.New(last, 5, o)
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		_, err = run.Next(t.Context())
		require.NoError(t, run.Close())
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		file := filepath.Join(folder, "1.bin")
		require.Equal(t, loader.Origin{File: file, Offset: 7, Record: 1}, failure.Origin)
		require.ErrorContains(t, err, file+", record 1 at offset 7: read: no such label")
	}
}

// store is a source that counts its reads and the Files that are open.
type store struct {
	name        string
	size        int64
	reads, open *int
	broken      error // of Stat
}

func (s store) Name() string { return s.name }

func (s store) Stat(context.Context) (source.Info, error) {
	return source.Info{Size: s.size}, s.broken
}

func (s store) Open(context.Context) (source.File, error) {
	*s.open++
	return source.NewFile(s.name, source.Info{Size: s.size}, func(_ context.Context, p []byte, _ int64) (int, error) {
		*s.reads++
		clear(p)
		return len(p), nil
	}, func() error { *s.open--; return nil }), nil
}

// A small record is one read, a large one a read for each field, into its place.
func TestHowManyReadsARecordTakes(t *testing.T) {
	for width, want := range map[int]int{3: 1, 16<<10 - 4: 1, 16<<10 - 3: 2} {
		reads, open := 0, 0
		data, err := records.Open(t.Context(), []source.Source{store{"a", int64(4 + width), &reads, &open, nil}}, twoFields(width), records.Options{})
		require.NoError(t, err)
		scratch, err := loader.NewScratch(data.Fields())
		require.NoError(t, err)
		require.NoError(t, data.Read(t.Context(), 0, scratch.Begin(new(loader.Row))))
		require.Equal(t, want, reads, width)
		require.NoError(t, data.Close())
		require.Zero(t, open)
	}
}

// What can't be opened leaves nothing open.
func TestOpenFailsWhole(t *testing.T) {
	broken := errors.New("no answer")
	reads, open := 0, 0
	huge := func(name string) source.Source { return store{name, math.MaxInt / 7 * 7, &reads, &open, nil} }
	for want, files := range map[string][]source.Source{
		"no answer":        {store{"a", 7, &reads, &open, nil}, store{"b", 7, &reads, &open, broken}},
		"too many records": {huge("a"), huge("b"), huge("c"), huge("d"), huge("e"), huge("f"), huge("g"), huge("h")},
	} {
		_, err := records.Open(t.Context(), files, twoFields(3), records.Options{})
		if want == "too many records" {
			_, err = records.Open(t.Context(), files, []loader.Field{{Name: "x", DType: dtype.Uint8}}, records.Options{})
		}
		require.ErrorContains(t, err, want)
		require.Zero(t, open)
	}
}
