package tfrecord_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/loader/tfrecord"
)

func one(data []byte) []source.Source {
	return []source.Source{source.FS(fstest.MapFS{"a": {Data: data}}, "a")}
}

func file(name string) []source.Source {
	return []source.Source{source.Path(filepath.Join("testdata", name))}
}

// sum is the checksum of the format.
func sum(b []byte) []byte {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32(nil, (c>>15|c<<17)+0xa282ead8)
}

// framed is a record that claims a length, with right checksums.
func framed(n uint64, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, n)
	b = append(b, sum(b)...)
	return append(append(b, data...), sum(data)...)
}

func record(text string) []byte { return framed(uint64(len(text)), []byte(text)) }

// byNumber reads all records by number.
func byNumber(t testing.TB, files []source.Source, o tfrecord.Options) (all []string, err error) {
	t.Helper()
	r, err := tfrecord.Open(t.Context(), files, o)
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, r.Close()) }()
	for i := range r.Len() {
		b, failed := r.Append(t.Context(), []byte("x"), i)
		if err = errors.Join(err, failed); failed == nil {
			all = append(all, string(b[1:]))
		}
	}
	return all, err
}

// inOrder reads all records of a stream's only shard.
func inOrder(t testing.TB, files []source.Source, o tfrecord.Options) (all []string, err error) {
	t.Helper()
	var errs []error
	for item, err := range tfrecord.NewStream(files, o).Items(t.Context(), loader.Pass{}, 0) {
		if err != nil {
			errs = append(errs, err)
			if n := len(errs); n > 1 && errs[n-1].Error() == errs[n-2].Error() {
				break // for ever
			}
			continue
		}
		all = append(all, string(item.Value))
	}
	return all, errors.Join(errs...)
}

// The bytes that TensorFlow writes for an empty record and for "abc".
func TestGoldenBytes(t *testing.T) {
	data, err := hex.DecodeString("000000000000000029039807d8ea82a2" + "0300000000000000b099490e6162636e57f121")
	require.NoError(t, err)
	for _, read := range []func(testing.TB, []source.Source, tfrecord.Options) ([]string, error){byNumber, inOrder} {
		got, err := read(t, one(data), tfrecord.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"", "abc"}, got)
		got, err = read(t, one(nil), tfrecord.Options{})
		require.NoError(t, err)
		require.Empty(t, got)
	}
}

var fields = []loader.Field{
	{Name: "id", DType: dtype.Int32}, {Name: "name", DType: dtype.Uint8, Shape: []int{6}},
	{Name: "scores", DType: dtype.Float32, Shape: []int{4}, Ragged: &loader.Ragged{}}, {Name: "image", DType: dtype.Uint8, Shape: []int{1, 3}},
}

// What the writer has written comes out, feature by feature, and the same of compressed files.
func TestExamples(t *testing.T) {
	r, err := tfrecord.Open(t.Context(), file("examples.tfrecord"), tfrecord.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	ds := r.Examples(fields)
	require.Equal(t, 5, ds.Len())
	require.Equal(t, fields, ds.Fields())
	scratch, err := loader.NewScratch(fields)
	require.NoError(t, err)
	for i := range 5 {
		row := scratch.Begin(new(loader.Row))
		require.NoError(t, ds.Read(t.Context(), i, row))
		require.NoError(t, scratch.Written())
		require.Equal(t, []int32{int32(-i)}, loader.Column[int32](row, "id"))
		require.Equal(t, fmt.Sprintf("name %d", i), string(row.Bytes("name")))
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 3), row.Bytes("image"))
		scores := loader.Value[float32](row, "scores")
		require.Len(t, scores, i)
		for _, s := range scores {
			require.Equal(t, float32(i)+0.5, s)
		}
	}
	want, err := byNumber(t, file("examples.tfrecord"), tfrecord.Options{Mapped: true})
	require.NoError(t, err)
	for _, name := range []string{"", ".gz", ".zlib", ".zst"} {
		got, err := inOrder(t, file("examples.tfrecord"+name), tfrecord.Options{})
		require.NoError(t, err, name)
		require.Equal(t, want, got)
		if name != "" {
			_, err = byNumber(t, file("examples.tfrecord"+name), tfrecord.Options{})
			require.ErrorAs(t, err, new(*source.FormatError))
			require.ErrorContains(t, err, "by NewStream")
		}
	}
	var e tfrecord.Example
	require.NoError(t, e.Parse([]byte(want[2])))
	require.Equal(t, []string{"id", "image", "name", "scores"}, e.Names())
	require.Equal(t, tfrecord.Int64, e.Kind("id"))
	require.Equal(t, tfrecord.None, e.Kind("other"))
}

// What does not fit a field, or is not there, is told with the file, the record and the feature.
func TestFeaturesThatDontFit(t *testing.T) {
	r, err := tfrecord.Open(t.Context(), file("examples.tfrecord"), tfrecord.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for want, f := range map[string]loader.Field{
		"other: want a feature of that name, got features id, image, name, scores": {Name: "other", DType: dtype.Int8},
		"id: want values that uint8 holds, got -3 as element 0":                    {Name: "id", DType: dtype.Uint8},
	} {
		scratch, err := loader.NewScratch([]loader.Field{f})
		require.NoError(t, err)
		err = r.Examples([]loader.Field{f}).Read(t.Context(), 3, scratch.Begin(new(loader.Row)))
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, filepath.Join("testdata", "examples.tfrecord"), format.File)
		require.EqualValues(t, 3, format.Record)
		require.Equal(t, r.Origin(3).Offset, format.Offset)
		require.ErrorContains(t, err, want)
	}
	for _, f := range []loader.Field{{Name: "name", DType: dtype.Uint8, Shape: []int{5}}, {Name: "scores", DType: dtype.Float32, Shape: []int{2}}} {
		scratch, err := loader.NewScratch([]loader.Field{f})
		require.NoError(t, err)
		require.ErrorAs(t, r.Examples([]loader.Field{f}).Read(t.Context(), 3, scratch.Begin(new(loader.Row))), new(*loader.SizeError))
	}
	e := new(tfrecord.Example)
	data, err := r.Append(t.Context(), nil, 1)
	require.NoError(t, err)
	require.NoError(t, e.Parse(data))
	_, err = e.AppendInts(nil, "name")
	require.ErrorContains(t, err, "name: want Int64List, got BytesList")
	_, err = e.AppendFloats(nil, "id")
	require.ErrorContains(t, err, "id: want FloatList, got Int64List")
	_, err = e.Bytes("scores")
	require.ErrorContains(t, err, "scores: want BytesList, got FloatList")
}

// field is one of a message, with bytes.
func field(number int, parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	return append(binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(data))), data...)
}

func example(name string, kind int, list ...[]byte) []byte {
	return field(1, field(1, field(1, []byte(name)), field(2, field(kind, list...))))
}

// Lists are written in one piece or number by number, negative ones in ten bytes, and the entries
// of a map in any order, of which the last counts.
func TestFormsOfAMessage(t *testing.T) {
	minus := binary.AppendUvarint(nil, 1<<64-1)
	require.Len(t, minus, 10)
	ints := func(data []byte) []int64 {
		var e tfrecord.Example
		require.NoError(t, e.Parse(data))
		got, err := e.AppendInts(nil, "x")
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []int64{-1, 5}, ints(example("x", 3, []byte{8}, minus, []byte{8, 5})))
	require.Equal(t, []int64{-1, 5}, ints(example("x", 3, field(1, minus, []byte{5}))))
	require.Equal(t, []int64{7, -1, 5}, ints(example("x", 3, []byte{8, 7}, field(1, minus), []byte{8, 5})))
	require.Equal(t, []int64{9}, ints(append(example("x", 3, []byte{8, 7}), example("x", 3, []byte{8, 9})...)))
	require.Equal(t, []int64{7}, ints(append(example("x", 3, []byte{8, 7}), field(5, []byte("unknown"))...)))
	backwards := field(1, field(1, field(2, field(3, []byte{8, 7})), field(1, []byte("x"))))
	require.Equal(t, []int64{7}, ints(backwards))

	var e tfrecord.Example
	half := binary.LittleEndian.AppendUint32(nil, 0x3f000000)
	for _, data := range [][]byte{example("x", 2, []byte{13}, half, []byte{13}, half), example("x", 2, field(1, half, half)), example("x", 2, field(9, []byte("new")), field(1, half, half))} {
		require.NoError(t, e.Parse(data))
		got, err := e.AppendFloats(nil, "x")
		require.NoError(t, err)
		require.Equal(t, []float32{0.5, 0.5}, got)
	}
	require.NoError(t, e.Parse(field(1, field(1, field(1, []byte("x"))))))
	require.Equal(t, tfrecord.None, e.Kind("x"))
	_, err := e.AppendInts(nil, "x")
	require.ErrorContains(t, err, "x: want Int64List, got no list")
	require.NoError(t, e.Parse(example("x", 1, field(1, []byte("a")), field(1, []byte("b")))))
	_, err = e.Bytes("x")
	require.ErrorContains(t, err, "x: want one byte string, got 2")
	require.NoError(t, e.Parse(nil))
	require.Empty(t, e.Names())
}

// A message that is none is an error, and never one that takes long.
func TestMessagesThatAreNone(t *testing.T) {
	var e tfrecord.Example
	many := bytes.Buffer{}
	for i := range 1 << 13 {
		many.Write(field(1, field(1, fmt.Append(nil, i))))
	}
	for _, data := range [][]byte{{0}, {0xff}, {10}, {10, 5, 1}, {11}, {10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, field(1, []byte{10, 9}), field(1, many.Bytes())} {
		err := e.Parse(data)
		require.ErrorAs(t, err, new(*source.FormatError))
		require.Empty(t, e.Names())
	}
	for kind, list := range map[int][]byte{1: {10, 9}, 2: field(1, []byte{1, 2, 3}), 3: field(1, []byte{0x80})} {
		require.NoError(t, e.Parse(example("x", kind, list)))
		_, one := e.AppendBytes(nil, "x")
		_, two := e.AppendFloats(nil, "x")
		_, three := e.AppendInts(nil, "x")
		require.ErrorContains(t, []error{one, two, three}[kind-1], "want a list")
	}
}

// A wrong checksum of bytes costs its record, by number and in order, and a wrong length all that
// follows.
func TestDamage(t *testing.T) {
	good := bytes.Join([][]byte{record("first"), record("second"), record("third")}, nil)
	bad := bytes.Clone(good)
	bad[len(record("first"))+14] ^= 1
	for _, read := range []func(testing.TB, []source.Source, tfrecord.Options) ([]string, error){byNumber, inOrder} {
		got, err := read(t, one(bad), tfrecord.Options{})
		require.Equal(t, []string{"first", "third"}, got)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, source.FormatError{Format: "tfrecord", File: "a", Offset: 21, Record: 1, Want: format.Want, Got: format.Got}, *format)
		require.Contains(t, format.Want, "6 bytes with checksum ")
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"length":   {append(record("first"), bytes.Replace(record("second"), []byte{6, 0}, []byte{7, 0}, 1)...), "at byte 21: record 1: want a length with its checksum"},
		"2^60":     {append(record("first"), framed(1<<60, nil)...), "at byte 21: record 1: want a record of at most 1073741824 bytes (Options.MaxBytes), got 1152921504606846976"},
		"2^64-1":   {append(record("first"), framed(1<<64-1, nil)...), "at byte 21: record 1: want a record of at most"},
		"1 GiB":    {append(record("first"), framed(1<<30, []byte("short"))...), "at byte 21: record 1: want the whole of a record, got the end of the file"},
		"one less": {good[:len(good)-1], "at byte 43: record 2: want the whole of a record"},
		"11 bytes": {append(record("first"), record("second")[:11]...), "at byte 21: record 1: want a whole length, got the end of the file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := byNumber(t, one(c.data), tfrecord.Options{})
			require.ErrorContains(t, err, c.want)
			got, err := inOrder(t, one(c.data), tfrecord.Options{})
			require.ErrorContains(t, err, c.want)
			require.Equal(t, "first", got[0])
		})
	}
	_, err := byNumber(t, one([]byte("hello, world, this is text")), tfrecord.Options{})
	require.ErrorContains(t, err, "at byte 0: record 0: want a length with its checksum")
	_, err = inOrder(t, one(good), tfrecord.Options{MaxBytes: 5})
	require.ErrorContains(t, err, "record 1: want a record of at most 5 bytes (Options.MaxBytes), got 6")
}

// A file of any length that is no whole one is an error.
func TestFilesThatAreCutOff(t *testing.T) {
	for _, name := range []string{"", ".gz", ".zlib", ".zst"} {
		data, err := os.ReadFile("testdata/examples.tfrecord" + name)
		require.NoError(t, err)
		whole, err := inOrder(t, one(data), tfrecord.Options{})
		require.NoError(t, err)
		ends := map[int]bool{0: true}
		if at := 0; name == "" {
			for _, r := range whole {
				at += 16 + len(r)
				ends[at] = true
			}
		}
		for n := 1; n < len(data); n++ {
			got, err := inOrder(t, one(data[:n]), tfrecord.Options{})
			require.Equal(t, whole[:len(got)], append([]string{}, got...))
			if ends[n] {
				require.NoError(t, err)
			} else {
				require.ErrorAs(t, err, new(*source.FormatError), "%s, %d of %d", name, n, len(data))
			}
		}
	}
}

// Parts of gzip that were put together are read to the end of the last.
func TestConcatenated(t *testing.T) {
	zip := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	data := append(record("first"), record("second")...)
	parts := append(zip(data[:15]), zip(data[15:])...)
	got, err := inOrder(t, one(append(bytes.Clone(parts), make([]byte, 512)...)), tfrecord.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, got)
	got, err = inOrder(t, one(append(bytes.Clone(parts), "garbage"...)), tfrecord.Options{})
	require.Equal(t, []string{"first", "second"}, got)
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.EqualValues(t, len(parts), format.Offset)
}

// Marks go on with exactly what is left; more of them are tested with package tar, which has the
// same.
func TestMarks(t *testing.T) {
	s := tfrecord.NewStream(append(file("examples.tfrecord"), file("examples.tfrecord.gz")...), tfrecord.Options{Shards: 1})
	r, err := s.Open(t.Context(), loader.Pass{}, 0, nil)
	require.NoError(t, err)
	var all []string
	var marks [][]byte
	for {
		mark, err := r.AppendMark(nil)
		require.NoError(t, err)
		marks = append(marks, mark)
		var item stream.Item[[]byte]
		ok, err := r.Next(t.Context(), &item)
		require.NoError(t, err)
		if !ok {
			break
		}
		all = append(all, item.Origin.String()+string(item.Value))
	}
	require.NoError(t, r.Close())
	require.Len(t, all, 10)
	for i, mark := range marks {
		r, err := s.Open(t.Context(), loader.Pass{}, 0, mark)
		require.NoError(t, err)
		for _, want := range append(all[i:len(all):len(all)], "") {
			var item stream.Item[[]byte]
			ok, err := r.Next(t.Context(), &item)
			require.NoError(t, err)
			require.Equal(t, want != "", ok)
			if ok {
				require.Equal(t, want, item.Origin.String()+string(item.Value))
			}
		}
		require.NoError(t, r.Close())
	}
}

// A file that changes under its reader is an error for the records that are others.
func TestAFileThatChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	data := append(record("first"), record("second")...)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	r, err := tfrecord.Open(t.Context(), []source.Source{source.Path(path)}, tfrecord.Options{})
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(record("firs"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(30))
	require.NoError(t, f.Close())
	_, err = r.Append(t.Context(), nil, 0)
	require.ErrorContains(t, err, "want the length that it had when the file was opened")
	_, err = r.Append(t.Context(), nil, 1)
	require.ErrorIs(t, err, source.ErrChanged)
	require.NoError(t, r.Close())
	_, err = r.Append(t.Context(), nil, 1)
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestMistakes(t *testing.T) {
	_, err := tfrecord.Open(t.Context(), nil, tfrecord.Options{})
	require.ErrorAs(t, err, new(*loader.OptionError))
	_, err = tfrecord.Open(t.Context(), one(nil), tfrecord.Options{MaxBytes: -1})
	require.ErrorAs(t, err, new(*loader.OptionError))
	require.ErrorAs(t, tfrecord.NewStream(one(nil), tfrecord.Options{MaxBytes: -1}).Err(), new(*loader.OptionError))
	_, err = tfrecord.Open(t.Context(), file("missing"), tfrecord.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Batches hold each record once, whatever reads them.
func TestBatches(t *testing.T) {
	r, err := tfrecord.Open(t.Context(), append(one(record("a")), one(append(record("b"), record("c")...))...), tfrecord.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	ds := r.Dataset([]loader.Field{{Name: "text", DType: dtype.Uint8, Shape: []int{1}}}, func(_ context.Context, record []byte, row *loader.Row) error {
		return loader.Write(row, "text", record...)
	})
	require.Equal(t, r.Fingerprint(), ds.(loader.Fingerprinter).Fingerprint())
	ld, err := loader.New(ds, 3, loader.Options{Shuffle: true, Epochs: 1, Workers: 2})
	require.NoError(t, err)
	mem, err := loader.NewHeap(ld.Layout().Size(), 1)
	require.NoError(t, err)
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	b, err := run.Next(t.Context())
	require.NoError(t, err)
	for _, c := range "abc" {
		require.Contains(t, string(ld.Layout().Rows(0, b)), string(c))
	}
	require.NoError(t, run.Close())
}

// Both ways agree on whatever a file holds.
func FuzzRecords(f *testing.F) {
	names, err := filepath.Glob("testdata/*.tfrecord*")
	require.NoError(f, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(append(record("first"), framed(1<<60, nil)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := tfrecord.Options{MaxBytes: 1 << 20}
		ordered, orderedErr := inOrder(t, one(data), o)
		if orderedErr != nil {
			require.ErrorAs(t, orderedErr, new(*source.FormatError))
		}
		numbered, err := byNumber(t, one(data), o)
		if err == nil {
			require.NoError(t, orderedErr)
			require.Equal(t, ordered, numbered)
		}
	})
}

// No message panics, and what is parsed can be asked for.
func FuzzExample(f *testing.F) {
	f.Add(example("x", 3, field(1, []byte{5})))
	f.Add(append(example("x", 2, []byte{13, 0, 0, 0, 0}), example("y", 1, field(1, []byte("a")))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e tfrecord.Example
		if err := e.Parse(data); err != nil {
			require.ErrorAs(t, err, new(*source.FormatError))
			return
		}
		for _, name := range e.Names() {
			_, one := e.AppendBytes(nil, name)
			_, two := e.AppendFloats(nil, name)
			_, three := e.AppendInts(nil, name)
			for kind, err := range []error{one, two, three} {
				if e.Kind(name) != tfrecord.Kind(kind+1) {
					require.ErrorAs(t, err, new(*source.FormatError))
				} else if err != nil {
					require.True(t, strings.Contains(err.Error(), "want a list"), err)
				}
			}
		}
	})
}
