package parquet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/parquet"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

func file(name string) []source.Source {
	return []source.Source{source.Path(filepath.Join("testdata", name))}
}

func one(data []byte) []source.Source {
	return []source.Source{source.FS(fstest.MapFS{"a.parquet": {Data: data}}, "a.parquet")}
}

var fields = []loader.Field{
	{Name: "id", DType: dtype.Int32}, {Name: "small", DType: dtype.Int64}, {Name: "ratio", DType: dtype.Float64}, {Name: "half", DType: dtype.Float16}, {Name: "flag", DType: dtype.Uint8},
	{Name: "name", DType: dtype.Uint8, Shape: []int{9}, Ragged: &loader.Ragged{}}, {Name: "raw", DType: dtype.Uint8, Shape: []int{9}, Ragged: &loader.Ragged{}},
	{Name: "large", DType: dtype.Uint8, Shape: []int{7}}, {Name: "pair", DType: dtype.Int32, Shape: []int{2}},
	{Name: "floats", DType: dtype.Float32, Shape: []int{9}, Ragged: &loader.Ragged{}}, {Name: "matrix", DType: dtype.Int64, Shape: []int{2, 3}},
	{Name: "when", DType: dtype.Int64}, {Name: "kind", DType: dtype.Uint8, Shape: []int{3}},
}

// requireRow checks row i of the fixtures.
func requireRow(t *testing.T, i int, row *loader.Row) {
	t.Helper()
	require.Equal(t, []int32{int32(-i)}, loader.Column[int32](row, "id"))
	require.Equal(t, []int64{int64(i)}, loader.Column[int64](row, "small"))
	require.Equal(t, []float64{float64(i) / 2}, loader.Column[float64](row, "ratio"))
	require.Equal(t, []uint16{[]uint16{0, 0x3400, 0x3800, 0x3a00, 0x3c00, 0x3d00, 0x3e00, 0x3f00, 0x4000, 0x4080}[i]}, loader.Column[uint16](row, "half"))
	require.Equal(t, i%3 == 0, row.Bytes("flag")[0] == 1)
	require.Equal(t, fmt.Sprintf("näme %d", i), string(loader.Value[uint8](row, "name")))
	require.Equal(t, bytes.Repeat([]byte{byte(i)}, i), append([]byte{}, loader.Value[uint8](row, "raw")...))
	require.Equal(t, fmt.Sprintf("large %d", i), string(row.Bytes("large")))
	require.Equal(t, []int32{int32(i), int32(i + 1)}, loader.Column[int32](row, "pair"))
	floats := loader.Value[float32](row, "floats")
	require.Len(t, floats, i)
	for _, x := range floats {
		require.Equal(t, float32(i)+0.5, x)
	}
	require.Equal(t, []int64{int64(i), 1, 2, 3, 4, int64(i)}, loader.Column[int64](row, "matrix"))
	require.Equal(t, []int64{int64(i) * 1000}, loader.Column[int64](row, "when"))
	require.Equal(t, []string{"cat", "dog"}[i%2], string(row.Bytes("kind")))
}

// What pyarrow has written comes out by number and in order, whatever compresses it, and with
// memory for one row group too.
func TestRows(t *testing.T) {
	for _, codec := range []string{"snappy", "zstd", "gzip", "brotli", "lz4", "none"} {
		for _, o := range []parquet.Options{{}, {CacheBytes: 1}} {
			table, err := parquet.Open(t.Context(), file("rows-"+codec+".parquet"), o)
			require.NoError(t, err)
			require.Equal(t, 10, table.Len())
			require.Equal(t, 15, table.Schema().NumFields())
			ds := table.Dataset(fields, nil)
			require.Equal(t, table.Fingerprint(), ds.(loader.Fingerprinter).Fingerprint())
			scratch, err := loader.NewScratch(fields)
			require.NoError(t, err)
			for _, i := range []int{9, 0, 4, 3, 8, 7, 1} {
				row := scratch.Begin(new(loader.Row))
				require.NoError(t, ds.Read(t.Context(), i, row))
				require.NoError(t, scratch.Written())
				requireRow(t, i, row)
				require.EqualValues(t, i, table.Origin(i).Record)
			}
			require.NoError(t, table.Close())
		}
		i := 0
		scratch, err := loader.NewScratch(fields)
		require.NoError(t, err)
		for item, err := range parquet.NewStream(file("rows-"+codec+".parquet"), parquet.Options{}).Items(t.Context(), loader.Pass{}, 0) {
			require.NoError(t, err)
			row := scratch.Begin(new(loader.Row))
			for _, f := range fields {
				require.NoError(t, item.Value.Write(row, f.Name))
			}
			requireRow(t, i, row)
			i++
		}
		require.Equal(t, 10, i)
	}
}

// Pictures as Hugging Face stores them are their bytes, and one that is only a path is told.
func TestPictures(t *testing.T) {
	table, err := parquet.Open(t.Context(), file("rows-snappy.parquet"), parquet.Options{Columns: []string{"image", "id"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	require.Equal(t, 2, table.Schema().NumFields())
	row, err := table.Row(t.Context(), 7)
	require.NoError(t, err)
	picture, err := row.Bytes("image")
	require.NoError(t, err)
	require.Equal(t, "JPEG7", string(picture))
	row, err = table.Row(t.Context(), 9)
	require.NoError(t, err)
	_, err = row.Bytes("image")
	require.EqualError(t, err, "parquet: testdata/rows-snappy.parquet: record 9: image: want bytes, got a path alone: elsewhere.jpg")
	_, err = row.Bytes("id")
	require.ErrorContains(t, err, "id: want bytes or a string, got int64")
	_, err = row.Bytes("name")
	require.ErrorContains(t, err, `name: want a column of that name, got columns ["id" "image"]`)
}

// What does not fit is told with the file, the row and the column.
func TestValuesThatDontFit(t *testing.T) {
	table, err := parquet.Open(t.Context(), file("rows-snappy.parquet"), parquet.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	for want, f := range map[string]loader.Field{
		"record 5: other: want a column of that name":                     {Name: "other", DType: dtype.Int8},
		"record 5: id: want values that uint8 holds, got -5 as element 0": {Name: "id", DType: dtype.Uint8},
		"record 5: matrix: want matrix int16[3 2], got int16[2 3]":        {Name: "matrix", DType: dtype.Int16, Shape: []int{3, 2}},
		"record 5: uneven: want lists of one length, without nulls":       {Name: "uneven", DType: dtype.Int16, Shape: []int{3}},
		"record 5: half: want float32 values, got float16":                {Name: "half", DType: dtype.Float32},
		"record 5: floats: want floats float32[4], got float32[5]":        {Name: "floats", DType: dtype.Float32, Shape: []int{4}},
		"record 5: id: want id int64[1], got int64[]":                     {Name: "id", DType: dtype.Int64, Shape: []int{1}},
	} {
		scratch, err := loader.NewScratch([]loader.Field{f})
		require.NoError(t, err)
		err = table.Dataset([]loader.Field{f}, nil).Read(t.Context(), 5, scratch.Begin(new(loader.Row)))
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*source.FormatError))
	}
	short := []loader.Field{{Name: "name", DType: dtype.Uint8, Shape: []int{3}}}
	scratch, err := loader.NewScratch(short)
	require.NoError(t, err)
	require.ErrorAs(t, table.Dataset(short, nil).Read(t.Context(), 5, scratch.Begin(new(loader.Row))), new(*loader.SizeError))
}

// pairs are the rows of a column of two numbers, nil where it is null.
func pairs(t *testing.T, table *parquet.Table, column string) (all [][]int32, failed []error) {
	masked := []loader.Field{{Name: column, DType: dtype.Int32, Shape: []int{2}}, {Name: "there", DType: dtype.Uint8}}
	ds := table.Dataset(masked, nil)
	scratch, err := loader.NewScratch(masked)
	require.NoError(t, err)
	for i := range table.Len() {
		row := scratch.Begin(new(loader.Row))
		if err := ds.Read(t.Context(), i, row); err != nil {
			failed = append(failed, err)
			continue
		}
		require.NoError(t, scratch.Written())
		var pair []int32
		if row.Bytes("there")[0] == 1 {
			pair = append(pair, loader.Column[int32](row, column)...)
		} else {
			require.Equal(t, []int32{0, 0}, loader.Column[int32](row, column))
		}
		all = append(all, pair)
	}
	return all, failed
}

// Rows behind a null keep their place, and a null is an error or masked.
func TestNulls(t *testing.T) {
	for _, column := range []string{"pair", "strict"} {
		table, err := parquet.Open(t.Context(), file("nulls.parquet"), parquet.Options{Masks: map[string]string{column: "there"}})
		require.NoError(t, err)
		got, failed := pairs(t, table, column)
		require.Empty(t, failed)
		require.Equal(t, [][]int32{{1, 2}, nil, {3, 4}, {5, 6}, nil}, got)
		require.NoError(t, table.Close())
	}
	table, err := parquet.Open(t.Context(), file("nulls.parquet"), parquet.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	for _, f := range []loader.Field{
		{Name: "pair", DType: dtype.Int32, Shape: []int{2}}, {Name: "optional", DType: dtype.Int64}, {Name: "text", DType: dtype.Uint8, Shape: []int{1}},
	} {
		scratch, err := loader.NewScratch([]loader.Field{f})
		require.NoError(t, err)
		ds := table.Dataset([]loader.Field{f}, nil)
		err = ds.Read(t.Context(), 1, scratch.Begin(new(loader.Row)))
		require.EqualError(t, err, "parquet: testdata/nulls.parquet: record 1: "+f.Name+": want a value, got null")
		require.NoError(t, ds.Read(t.Context(), 3, scratch.Begin(new(loader.Row))))
	}
	list := []loader.Field{{Name: "list", DType: dtype.Int32, Shape: []int{4}, Ragged: &loader.Ragged{}}}
	scratch, err := loader.NewScratch(list)
	require.NoError(t, err)
	lengths := []int{2, -1, 1, -1, 0}
	for i, want := range lengths {
		row := scratch.Begin(new(loader.Row))
		err := table.Dataset(list, nil).Read(t.Context(), i, row)
		require.Equal(t, want >= 0, err == nil, "%d: %v", i, err)
		if want >= 0 {
			require.Len(t, loader.Value[int32](row, "list"), want)
		}
	}
	row, err := table.Row(t.Context(), 3)
	require.NoError(t, err)
	number := []loader.Field{{Name: "optional", DType: dtype.Int64}}
	scratch, err = loader.NewScratch(number)
	require.NoError(t, err)
	to := scratch.Begin(new(loader.Row))
	require.NoError(t, row.Write(to, "optional"))
	require.Equal(t, []int64{7777}, loader.Column[int64](to, "optional"))
}

// One value in a hundred, whoever has written them.
func TestSparseColumns(t *testing.T) {
	own := array.NewInt64Builder(memory.NewGoAllocator())
	for i := range 10000 {
		if i%100 == 37 {
			own.Append(int64(i))
		} else {
			own.AppendNull()
		}
	}
	column := own.NewArray()
	schema := arrow.NewSchema([]arrow.Field{{Name: "sparse", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &b, nil, pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(array.NewRecordBatch(schema, []arrow.Array{column}, 10000)))
	require.NoError(t, w.Close())
	for name, files := range map[string][]source.Source{"pyarrow": file("sparse.parquet"), "arrow-go": one(b.Bytes())} {
		table, err := parquet.Open(t.Context(), files, parquet.Options{})
		require.NoError(t, err)
		n := 0
		for i := range table.Len() {
			row, err := table.Row(t.Context(), i)
			require.NoError(t, err)
			a, at, err := row.Column("sparse")
			require.NoError(t, err)
			require.Equal(t, i%100 != 37, a.IsNull(at), "%s, row %d", name, i)
			if !a.IsNull(at) {
				require.EqualValues(t, i, a.(*array.Int64).Value(at))
				n++
			}
		}
		require.Equal(t, 100, n)
		require.NoError(t, table.Close())
	}
}

// More than 2 GiB of strings in one column chunk, of which a dictionary has one: in memory for that,
// or refused.
func TestMoreThanTwoGigabytesOfOneString(t *testing.T) {
	table, err := parquet.Open(t.Context(), file("big.parquet"), parquet.Options{MaxBytes: 512 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	for _, i := range []int{39, 0} {
		row, err := table.Row(t.Context(), i)
		require.NoError(t, err)
		b, err := row.Bytes("big")
		require.NoError(t, err)
		require.Len(t, b, 64<<20)
		require.Equal(t, byte('x'), b[len(b)-1])
	}
	n := 0
	for item, err := range parquet.NewStream(file("big.parquet"), parquet.Options{MaxBytes: 512 << 20}).Items(t.Context(), loader.Pass{}, 0) {
		require.NoError(t, err)
		b, err := item.Value.Bytes("big")
		require.NoError(t, err)
		require.Len(t, b, 64<<20)
		n++
	}
	require.Equal(t, 40, n)

	small, err := parquet.Open(t.Context(), file("big.parquet"), parquet.Options{MaxBytes: 32 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, small.Close()) }()
	_, err = small.Row(t.Context(), 39)
	require.EqualError(t, err, "parquet: testdata/big.parquet: row group 0: want a row group that is decoded in Options.MaxBytes, got more than 33554432 bytes")
}

// Files that are none, or are damaged at any place, are errors, and no panics.
func TestDamage(t *testing.T) {
	whole, err := os.ReadFile("testdata/rows-zstd.parquet")
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte("hello, this is text and no Parquet file"), "cut": whole[:len(whole)-1], "head alone": whole[:100],
		"encrypted": append(bytes.Clone(whole[:len(whole)-4]), "PARE"...),
		"footer":    append(bytes.Clone(whole[:len(whole)-8]), 0xff, 0xff, 0xff, 0x7f, 'P', 'A', 'R', '1'),
	} {
		_, err := parquet.Open(t.Context(), one(data), parquet.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, name)
		require.Equal(t, "a.parquet", format.File)
	}
	for at := 0; at < len(whole); at += 61 {
		data := bytes.Clone(whole)
		data[at] ^= 0x55
		table, err := parquet.Open(t.Context(), one(data), parquet.Options{MaxBytes: 64 << 20})
		if err != nil {
			require.True(t, errors.As(err, new(*source.FormatError)), "%d: %v", at, err)
			continue
		}
		for i := range min(table.Len(), 20) {
			row, err := table.Row(t.Context(), i)
			if err != nil {
				require.True(t, errors.As(err, new(*source.FormatError)), "%d: %v", at, err)
				continue
			}
			for _, f := range table.Schema().Fields() {
				_, _ = row.Bytes(f.Name)
			}
		}
		require.NoError(t, table.Close())
	}
}

// What Arrow's writers add to a file of their own is not read, whose lengths nobody checks.
func TestArrowsOwnSchema(t *testing.T) {
	whole, err := os.ReadFile("testdata/rows-none.parquet")
	require.NoError(t, err)
	begin := bytes.Index(whole, []byte("ARROW:schema"))
	require.Positive(t, begin)
	for at := begin + 20; at < begin+1000; at += 13 {
		data := bytes.Clone(whole)
		copy(data[at:], "/////w")
		table, err := parquet.Open(t.Context(), one(data), parquet.Options{})
		require.NoError(t, err, at)
		require.NotZero(t, table.Len())
		require.NoError(t, table.Close())
	}
}

// From each place a stream goes on with exactly what is left.
func TestMarks(t *testing.T) {
	s := parquet.NewStream(append(file("rows-zstd.parquet"), file("rows-none.parquet")...), parquet.Options{Shards: 1, Columns: []string{"id"}})
	require.NoError(t, s.Err())
	read := func(mark []byte) (all []loader.Origin, marks [][]byte) {
		r, err := s.Open(t.Context(), loader.Pass{}, 0, mark)
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		for {
			m, err := r.AppendMark(nil)
			require.NoError(t, err)
			marks = append(marks, m)
			var item stream.Item[*parquet.Row]
			ok, err := r.Next(t.Context(), &item)
			require.NoError(t, err)
			if !ok {
				return all, marks
			}
			a, at, err := item.Value.Column("id")
			require.NoError(t, err)
			require.EqualValues(t, -item.Origin.Record, a.(*array.Int64).Value(at))
			all = append(all, item.Origin)
		}
	}
	all, marks := read(nil)
	require.Len(t, all, 20)
	for i, mark := range marks {
		left, _ := read(mark)
		require.Equal(t, append([]loader.Origin(nil), all[i:]...), left)
	}
}

func TestMistakes(t *testing.T) {
	for _, o := range []parquet.Options{{MaxBytes: -1}, {CacheBytes: -1}, {Columns: []string{}}, {Columns: []string{"id", "id"}}, {Columns: []string{"none"}}} {
		_, err := parquet.Open(t.Context(), file("rows-none.parquet"), o)
		require.ErrorAs(t, err, new(*loader.OptionError))
	}
	_, err := parquet.Open(t.Context(), nil, parquet.Options{})
	require.ErrorAs(t, err, new(*loader.OptionError))
	require.ErrorAs(t, parquet.NewStream(file("rows-none.parquet"), parquet.Options{MaxBytes: -1}).Err(), new(*loader.OptionError))
	_, err = parquet.Open(t.Context(), file("missing.parquet"), parquet.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = parquet.Open(t.Context(), append(file("rows-none.parquet"), file("nulls.parquet")...), parquet.Options{})
	require.ErrorContains(t, err, "want the columns of testdata/rows-none.parquet")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = parquet.Open(cancelled, file("rows-none.parquet"), parquet.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// Batches are the same for any number of workers, which share the groups.
func TestBatches(t *testing.T) {
	table, err := parquet.Open(t.Context(), append(file("rows-zstd.parquet"), file("rows-none.parquet")...), parquet.Options{CacheBytes: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	var first []loader.Digest
	for _, workers := range []int{1, 4} {
		ld, err := loader.New(table.Dataset(fields, nil), 4, loader.Options{Shuffle: true, Seed: 9, Epochs: 1, Workers: workers})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 2)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		var digests []loader.Digest
		for {
			b, err := run.Next(t.Context())
			if errors.Is(err, loader.ErrEpochEnd) {
				break
			}
			require.NoError(t, err)
			digests = append(digests, ld.Layout().Digest(b))
			mem.Put(b.Slot)
		}
		require.NoError(t, run.Close())
		if first == nil {
			first = digests
		}
		require.Equal(t, first, digests)
		require.Len(t, digests, 5)
	}
}

// No group is kept beyond the room for it.
func TestTheCacheHasALimit(t *testing.T) {
	table, err := parquet.Open(t.Context(), file("big.parquet"), parquet.Options{CacheBytes: 1, Columns: []string{"id"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 40 {
		_, err := table.Row(t.Context(), i)
		require.NoError(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "a column that is not read")
}

// Whatever a file holds, nothing panics, and both ways agree.
func FuzzParquet(f *testing.F) {
	for _, name := range []string{"rows-none.parquet", "rows-zstd.parquet", "nulls.parquet", "sparse.parquet"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := parquet.Open(t.Context(), one(data), parquet.Options{MaxBytes: 16 << 20})
		if err != nil {
			require.ErrorAs(t, err, new(*source.FormatError))
			return
		}
		defer table.Close()
		for i := range min(table.Len(), 10) {
			row, err := table.Row(t.Context(), i)
			if err != nil {
				require.ErrorAs(t, err, new(*source.FormatError))
				continue
			}
			for _, field := range table.Schema().Fields() {
				_, _ = row.Bytes(field.Name)
			}
		}
	})
}
