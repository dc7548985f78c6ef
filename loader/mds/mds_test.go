package mds_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/mds"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

var fields = []loader.Field{
	{Name: "id", DType: dtype.Int32}, {Name: "small", DType: dtype.Uint8}, {Name: "ratio", DType: dtype.Float64}, {Name: "half", DType: dtype.Float16},
	{Name: "text", DType: dtype.Uint8, Shape: []int{8}, Ragged: &loader.Ragged{}}, {Name: "raw", DType: dtype.Uint8, Shape: []int{20}, Ragged: &loader.Ragged{}},
	{Name: "fixed", DType: dtype.Int16, Shape: []int{2, 3}}, {Name: "typed", DType: dtype.Int32, Shape: []int{12}, Ragged: &loader.Ragged{}},
	{Name: "count", DType: dtype.Int64},
}

// requireSample checks sample i of the fixtures.
func requireSample(t *testing.T, i int, row *loader.Row) {
	t.Helper()
	require.Equal(t, []int32{int32(-i)}, loader.Column[int32](row, "id"))
	require.Equal(t, []byte{byte(i)}, row.Bytes("small"))
	require.Equal(t, []float64{float64(i) / 2}, loader.Column[float64](row, "ratio"))
	require.Equal(t, []uint16{[]uint16{0, 0x3400, 0x3800, 0x3a00, 0x3c00, 0x3d00, 0x3e00, 0x3f00, 0x4000, 0x4080, 0x4100, 0x4180}[i]}, loader.Column[uint16](row, "half"))
	require.Equal(t, fmt.Sprintf("täxt %d", i), string(loader.Value[uint8](row, "text")))
	require.Equal(t, bytes.Repeat([]byte{byte(i)}, i), append([]byte{}, loader.Value[uint8](row, "raw")...))
	for k, x := range loader.Column[int16](row, "fixed") {
		require.EqualValues(t, k+i, x)
	}
	typed := loader.Value[int32](row, "typed")
	require.Len(t, typed, i+1)
	require.EqualValues(t, i, typed[i])
	require.Equal(t, []int64{int64(math.Pow10(i))}, loader.Column[int64](row, "count"))
}

// What the writer has written comes out by number and in order, plain and compressed.
func TestSamples(t *testing.T) {
	for _, o := range []mds.Options{{}, {Mapped: true}} {
		for _, name := range []string{"plain", "hashed"} {
			s, err := mds.Open(t.Context(), "testdata/"+name, o)
			require.NoError(t, err)
			require.Equal(t, 12, s.Len())
			require.Len(t, s.Columns(), 11)
			ds := s.Dataset(fields, nil)
			require.Equal(t, s.Fingerprint(), ds.(loader.Fingerprinter).Fingerprint())
			scratch, err := loader.NewScratch(fields)
			require.NoError(t, err)
			for _, i := range []int{11, 0, 5, 3, 4, 7} {
				row := scratch.Begin(new(loader.Row))
				require.NoError(t, ds.Read(t.Context(), i, row))
				require.NoError(t, scratch.Written())
				requireSample(t, i, row)
			}
			require.Equal(t, "shard.00001.mds", filepath.Base(s.Origin(4).File))
			require.EqualValues(t, 0, s.Origin(4).Record)
			require.NoError(t, s.Close())
			_, err = s.Read(t.Context(), 0)
			require.ErrorIs(t, err, fs.ErrClosed)
		}
	}
	for _, name := range []string{"plain", "zstd", "hashed"} {
		i := 0
		s := mds.NewStream(t.Context(), "testdata/"+name, mds.Options{Shards: 1})
		require.NoError(t, s.Err())
		scratch, err := loader.NewScratch(fields)
		require.NoError(t, err)
		for item, err := range s.Items(t.Context(), loader.Pass{}, 0) {
			require.NoError(t, err)
			row := scratch.Begin(new(loader.Row))
			for _, f := range fields {
				require.NoError(t, item.Value.Write(row, f.Name))
			}
			requireSample(t, i, row)
			require.Equal(t, item.Origin, item.Value.Origin)
			i++
		}
		require.Equal(t, 12, i)
	}
	_, err := mds.Open(t.Context(), "testdata/zstd", mds.Options{})
	require.ErrorContains(t, err, "want the plain shard shard.00000.mds, since samples of compressed ones are read in order, by NewStream, got the compressed one alone")
}

// Columns tell the fields that fit them.
func TestColumns(t *testing.T) {
	s, err := mds.Open(t.Context(), "testdata/plain", mds.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	got := map[string]string{}
	for _, c := range s.Columns() {
		if f, ok := c.Field(); ok {
			got[c.Encoding] = f.String()
		}
	}
	require.Equal(t, map[string]string{"int": "id int64", "uint8": "small uint8", "float16": "half float16", "float32": "ratio float32", "ndarray:int16:2,3": "fixed int16[2 3]"}, got)

	sample, err := s.Read(t.Context(), 2)
	require.NoError(t, err)
	text, err := sample.Get("meta")
	require.NoError(t, err)
	require.Equal(t, `{"i": 2}`, string(text))
	free := []loader.Field{{Name: "free", DType: dtype.Float32, Shape: []int{2, 3}}}
	scratch, err := loader.NewScratch(free)
	require.NoError(t, err)
	row := scratch.Begin(new(loader.Row))
	require.NoError(t, sample.Write(row, "free"))
	require.Equal(t, []float32{2.5, 2.5, 2.5, 2.5, 2.5, 2.5}, loader.Column[float32](row, "free"))
}

// What does not fit is told with the shard, the sample and the column.
func TestValuesThatDontFit(t *testing.T) {
	s, err := mds.Open(t.Context(), "testdata/plain", mds.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for want, f := range map[string]loader.Field{
		"other: want a column of that name, got columns count, fixed, free": {Name: "other", DType: dtype.Int8},
		"id: want values that uint8 holds, got -5 as element 0":             {Name: "id", DType: dtype.Uint8},
		"fixed: want fixed int16[3 2], got int16[2 3]":                      {Name: "fixed", DType: dtype.Int16, Shape: []int{3, 2}},
		"free: want free float64[2 6 1], got float64[2 6]":                  {Name: "free", DType: dtype.Float64, Shape: []int{2, 6, 1}},
		"half: want float32 values, got float16":                            {Name: "half", DType: dtype.Float32},
		"typed: want typed int32[5], got int32[6]":                          {Name: "typed", DType: dtype.Int32, Shape: []int{5}},
	} {
		scratch, err := loader.NewScratch([]loader.Field{f})
		require.NoError(t, err)
		err = s.Dataset([]loader.Field{f}, nil).Read(t.Context(), 5, scratch.Begin(new(loader.Row)))
		require.ErrorContains(t, err, want)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, s.Origin(5), loader.Origin{File: format.File, Offset: format.Offset, Record: format.Record})
		require.Equal(t, f.Name, format.Field)
	}
}

// folder is a copy of a fixture in memory, with its index changed.
func folder(t testing.TB, name string, change func(index map[string]any)) fstest.MapFS {
	out := fstest.MapFS{}
	names, err := filepath.Glob("testdata/" + name + "/*")
	require.NoError(t, err)
	for _, path := range names {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		out[filepath.Base(path)] = &fstest.MapFile{Data: data}
	}
	var index map[string]any
	require.NoError(t, json.Unmarshal(out["index.json"].Data, &index))
	if change != nil {
		change(index)
	}
	out["index.json"].Data, err = json.Marshal(index)
	require.NoError(t, err)
	return out
}

func shard(index map[string]any, i int) map[string]any {
	return index["shards"].([]any)[i].(map[string]any)
}

// An index that lies is an error that says where, and nothing outside of the folder is opened.
func TestIndexes(t *testing.T) {
	raw := func(index map[string]any) map[string]any { return shard(index, 1)["raw_data"].(map[string]any) }
	for want, change := range map[string]func(map[string]any){
		"version: want 2, got 1":                                func(x map[string]any) { x["version"] = 1 },
		"shards: want one shard or more, got none":              func(x map[string]any) { x["shards"] = []any{} },
		`shards[1].format: want mds, got "json"`:                func(x map[string]any) { shard(x, 1)["format"] = "json" },
		"shards[1].version: want 2, got 1":                      func(x map[string]any) { shard(x, 1)["version"] = 1 },
		"shards[1].samples: want what 808 bytes":                func(x map[string]any) { shard(x, 1)["samples"] = 201 },
		"shards[1].raw_data.bytes: want at most the 4294967295": func(x map[string]any) { raw(x)["bytes"] = int64(1) << 32 },
		"got -1": func(x map[string]any) { shard(x, 1)["samples"] = -1 },
		"want 807 bytes, as the index has, got 808":               func(x map[string]any) { raw(x)["bytes"] = 807 },
		"at byte 0: want 3 samples, as the index has, got 2":      func(x map[string]any) { shard(x, 1)["samples"] = 3 },
		`shards[1].basename: want a file in the folder, got "../`: func(x map[string]any) { raw(x)["basename"] = "../plain/shard.00001.mds" },
		`got "/etc/passwd"`: func(x map[string]any) { raw(x)["basename"] = "/etc/passwd" },
		`shards[1].basename: want a file in the folder, got ""`: func(x map[string]any) { raw(x)["basename"] = "" },
		"shards[1].basename: want each file once, got shard.00000.mds": func(x map[string]any) {
			raw(x)["basename"] = "shard.00000.mds"
		},
		"shards[1]: want as many names of columns":                          func(x map[string]any) { shard(x, 1)["column_names"] = []any{"a"} },
		"shards[1]: want the columns of the first":                          func(x map[string]any) { shard(x, 1)["column_names"].([]any)[0] = "other" },
		"shards[0].fixed: want each column once":                            func(x map[string]any) { shard(x, 0)["column_names"].([]any)[0] = "fixed" },
		"shards[0].fixed: want the size that ndarray:int16:2,3 has, got 11": func(x map[string]any) { shard(x, 0)["column_sizes"].([]any)[1] = 11 },
		"shards[0].id: want the size that int has, got none":                func(x map[string]any) { shard(x, 0)["column_sizes"].([]any)[4] = nil },
		"shards[0].text: want the size that str has, got -4":                func(x map[string]any) { shard(x, 0)["column_sizes"].([]any)[9] = -4 },
		"shards[0].fixed: want a shape of less than 2 GiB":                  func(x map[string]any) { shard(x, 0)["column_encodings"].([]any)[1] = "ndarray:int16:65536,65536" },
		"shards[0].fixed: want a type of numbers, got ndarray:object":       func(x map[string]any) { shard(x, 0)["column_encodings"].([]any)[1] = "ndarray:object" },
		"want an index in JSON":                                             func(x map[string]any) { x["shards"] = 7 },
	} {
		f := folder(t, "plain", change)
		_, err := mds.OpenFS(t.Context(), f, mds.Options{})
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*source.FormatError))
		s := mds.NewStreamFS(t.Context(), f, mds.Options{Shards: 1})
		failed := s.Err()
		if failed == nil {
			for _, failed = range s.Items(t.Context(), loader.Pass{}, 0) {
				if failed != nil {
					break
				}
			}
		}
		require.ErrorAs(t, failed, new(*source.FormatError), want)
	}
	_, err := mds.Open(t.Context(), t.TempDir(), mds.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = mds.Open(t.Context(), "testdata/plain", mds.Options{MaxBytes: -1})
	require.ErrorAs(t, err, new(*loader.OptionError))
	require.ErrorAs(t, mds.NewStream(t.Context(), "testdata/plain", mds.Options{MaxBytes: -1}).Err(), new(*loader.OptionError))
	gone := folder(t, "plain", nil)
	delete(gone, "shard.00003.mds")
	_, err = mds.OpenFS(t.Context(), gone, mds.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, mds.NewStreamFS(t.Context(), gone, mds.Options{}).Err(), fs.ErrNotExist)
}

// Offsets that go back, or beyond the shard, are refused before a sample is read.
func TestOffsets(t *testing.T) {
	for want, c := range map[string]struct {
		at    int
		value uint32
	}{
		"at byte 0: want 4 samples, as the index has, got 1000000000": {0, 1_000_000_000},
		"at byte 4: want an offset from 24 to 936, got 23":            {4, 23},
		"at byte 8: want an offset from 432 to 936, got 431":          {8, 431},
		"at byte 12: want an offset from 525 to 936, got 4294967295":  {12, math.MaxUint32},
		"at byte 20: want the end of the shard, 936, got 935":         {20, 935},
	} {
		f := folder(t, "plain", nil)
		data := bytes.Clone(f["shard.00000.mds"].Data)
		binary.LittleEndian.PutUint32(data[c.at:], c.value)
		f["shard.00000.mds"] = &fstest.MapFile{Data: data}
		_, err := mds.OpenFS(t.Context(), f, mds.Options{})
		require.ErrorContains(t, err, want)
		for _, err := range mds.NewStreamFS(t.Context(), f, mds.Options{}).Items(t.Context(), loader.Pass{}, 0) {
			require.ErrorContains(t, err, want)
			break
		}
	}
}

// Neither a large file without contents nor a small one that is decompressed to as much is
// believed: memory is taken for offsets that are right.
func TestMemoryFollowsOffsets(t *testing.T) {
	const size, samples = 1 << 30, 1<<28 - 3
	path := t.TempDir()
	count := binary.LittleEndian.AppendUint32(nil, samples)
	require.NoError(t, os.WriteFile(filepath.Join(path, "a.mds"), count, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(path, "a.mds"), size))
	var zipped bytes.Buffer
	z, err := zstd.NewWriter(&zipped)
	require.NoError(t, err)
	_, err = z.Write(append(count, make([]byte, 64<<20)...))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(filepath.Join(path, "b.mds.zstd"), zipped.Bytes(), 0o600))
	write := func(plain, zip string) {
		index := map[string]any{"version": 2, "shards": []any{map[string]any{
			"format": "mds", "version": 2, "samples": samples, "column_names": []string{"n"}, "column_encodings": []string{"int8"}, "column_sizes": []int{1},
			"raw_data": map[string]any{"basename": plain, "bytes": size}, "zip_data": map[string]any{"basename": zip, "bytes": 1},
		}}}
		text, err := json.Marshal(index)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(path, "index.json"), text, 0o600))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const want = "at byte 4: want an offset from 1073741820 to 1073741824, got 0"
	write("a.mds", "a.mds.zstd")
	_, err = mds.Open(t.Context(), path, mds.Options{})
	require.ErrorContains(t, err, want)
	write("b.mds", "b.mds.zstd")
	for _, err := range mds.NewStream(t.Context(), path, mds.Options{}).Items(t.Context(), loader.Pass{}, 0) {
		require.ErrorContains(t, err, want)
		break
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}

// A sample whose sizes don't fit costs that sample only.
func TestBrokenSamples(t *testing.T) {
	f := folder(t, "plain", nil)
	data := bytes.Clone(f["shard.00000.mds"].Data)
	binary.LittleEndian.PutUint32(data[525:], math.MaxUint32) // the first size of the second sample
	binary.LittleEndian.PutUint32(data[640:], 0)              // that of the third
	f["shard.00000.mds"] = &fstest.MapFile{Data: data}
	s, err := mds.OpenFS(t.Context(), f, mds.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Read(t.Context(), 1)
	require.ErrorContains(t, err, "mds: shard.00000.mds: at byte 525: record 1: count: want 4294967295 bytes, got ")
	_, err = s.Read(t.Context(), 2)
	require.ErrorContains(t, err, "want the end of the sample, got 3 bytes more")
	_, err = s.Read(t.Context(), 3)
	require.NoError(t, err)
	good, bad := 0, 0
	for _, err := range mds.NewStreamFS(t.Context(), f, mds.Options{Shards: 1}).Items(t.Context(), loader.Pass{}, 0) {
		if err != nil {
			require.ErrorAs(t, err, new(*source.FormatError))
			bad++
		} else {
			good++
		}
	}
	require.Equal(t, []int{10, 2}, []int{good, bad})

	_, err = mds.OpenFS(t.Context(), f, mds.Options{MaxBytes: 120})
	require.ErrorContains(t, err, "want a sample of at most 120 bytes (Options.MaxBytes), got ")
	for _, err := range mds.NewStreamFS(t.Context(), folder(t, "zstd", nil), mds.Options{MaxBytes: 100}).Items(t.Context(), loader.Pass{}, 5) {
		require.ErrorContains(t, err, "(Options.MaxBytes), got ")
	}
}

// Pickles are refused, by whatever way they are asked for.
func TestPickles(t *testing.T) {
	f := folder(t, "plain", func(x map[string]any) {
		for i := range x["shards"].([]any) {
			shard(x, i)["column_encodings"].([]any)[9] = "pkl"
		}
	})
	s, err := mds.OpenFS(t.Context(), f, mds.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	sample, err := s.Read(t.Context(), 0)
	require.NoError(t, err)
	_, err = sample.Get("text")
	require.ErrorContains(t, err, "text: want an encoding that holds data alone, got a pickle, which is a program")
	scratch, err := loader.NewScratch(fields)
	require.NoError(t, err)
	require.ErrorContains(t, sample.Write(scratch.Begin(new(loader.Row)), "text"), "a pickle")
}

// A shard that is cut off, plain or compressed, is an error.
func TestFilesThatAreCutOff(t *testing.T) {
	for _, name := range []string{"plain", "zstd"} {
		f := folder(t, name, nil)
		file := map[string]string{"plain": "shard.00000.mds", "zstd": "shard.00000.mds.zstd"}[name]
		whole := f[file].Data
		for n := range whole {
			f[file] = &fstest.MapFile{Data: whole[:n]}
			var failed error
			for _, err := range mds.NewStreamFS(t.Context(), f, mds.Options{}).Items(t.Context(), loader.Pass{}, 0) {
				if failed = err; err != nil {
					break
				}
			}
			if name == "zstd" && n >= len(whole)-4 {
				continue // a checksum of the whole, behind the last sample
			}
			require.ErrorAs(t, failed, new(*source.FormatError), "%s, %d of %d", name, n, len(whole))
		}
	}
}

// From each place a stream goes on with exactly what is left.
func TestMarks(t *testing.T) {
	for _, name := range []string{"plain", "zstd"} {
		s := mds.NewStream(t.Context(), "testdata/"+name, mds.Options{Shards: 2, Shuffle: true})
		pass := loader.Pass{Epoch: 3}
		r, err := s.Open(t.Context(), pass, 1, nil)
		require.NoError(t, err)
		var all []loader.Origin
		var marks [][]byte
		for {
			mark, err := r.AppendMark(nil)
			require.NoError(t, err)
			marks = append(marks, mark)
			var item stream.Item[*mds.Sample]
			ok, err := r.Next(t.Context(), &item)
			require.NoError(t, err)
			if !ok {
				break
			}
			all = append(all, item.Origin)
		}
		require.NoError(t, r.Close())
		for i, mark := range marks {
			r, err := s.Open(t.Context(), pass, 1, mark)
			require.NoError(t, err)
			var left []loader.Origin
			for {
				var item stream.Item[*mds.Sample]
				ok, err := r.Next(t.Context(), &item)
				require.NoError(t, err)
				if !ok {
					break
				}
				left = append(left, item.Origin)
			}
			require.NoError(t, r.Close())
			require.Equal(t, append([]loader.Origin(nil), all[i:]...), left)
		}
		r, err = s.Open(t.Context(), pass, 1, []byte(`{"file":0,"record":99}`))
		require.NoError(t, err)
		_, err = r.Next(t.Context(), new(stream.Item[*mds.Sample]))
		require.ErrorContains(t, err, "want sample 99, which was marked")
		require.NoError(t, r.Close())
	}
}

// A number of samples whose bytes look like the sign of gzip is no gzip.
func TestAPlainShardThatLooksCompressed(t *testing.T) {
	const n = 0x8b1f
	data := binary.LittleEndian.AppendUint32(nil, n)
	begin := uint32(4 * (n + 2))
	for i := range uint32(n + 1) {
		data = binary.LittleEndian.AppendUint32(data, begin+i)
	}
	data = append(data, make([]byte, n)...)
	index := fmt.Sprintf(`{"version":2,"shards":[{"column_encodings":["uint8"],"column_names":["x"],"column_sizes":[1],"format":"mds","raw_data":{"basename":"s","bytes":%d},"samples":%d,"version":2}]}`, len(data), n)
	f := fstest.MapFS{"index.json": {Data: []byte(index)}, "s": {Data: data}}
	count := 0
	for _, err := range mds.NewStreamFS(t.Context(), f, mds.Options{}).Items(t.Context(), loader.Pass{}, 0) {
		require.NoError(t, err)
		count++
	}
	require.Equal(t, n, count)
}

// Both ways agree on whatever index and shard there are.
func FuzzFolder(f *testing.F) {
	for _, name := range []string{"plain", "zstd"} {
		fixture := folder(f, name, func(x map[string]any) { x["shards"] = x["shards"].([]any)[:1] })
		for file, content := range fixture {
			if strings.HasPrefix(file, "shard.00000") {
				f.Add(fixture["index.json"].Data, content.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, index, data []byte) {
		files := fstest.MapFS{"index.json": {Data: index}, "shard.00000.mds": {Data: data}}
		if bytes.Contains(index, []byte("zstd")) {
			files["shard.00000.mds.zstd"] = &fstest.MapFile{Data: data}
			delete(files, "shard.00000.mds")
		}
		o := mds.Options{MaxBytes: 1 << 20, Shards: 1}
		var keys []string
		st := mds.NewStreamFS(t.Context(), files, o)
		var failed error
		if failed = st.Err(); failed == nil {
			for item, err := range st.Items(t.Context(), loader.Pass{}, 0) {
				if err != nil {
					if failed != nil && failed.Error() == err.Error() {
						break
					}
					failed = err
					continue
				}
				keys = append(keys, item.Origin.String())
			}
		}
		s, err := mds.OpenFS(t.Context(), files, o)
		if err != nil {
			return
		}
		defer s.Close()
		var numbered []string
		for i := range s.Len() {
			_, err := s.Read(t.Context(), i)
			if err == nil {
				numbered = append(numbered, s.Origin(i).String())
			} else {
				require.True(t, errors.As(err, new(*source.FormatError)))
			}
		}
		require.Equal(t, keys, numbered)
	})
}
