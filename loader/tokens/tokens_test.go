package tokens_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tokens"
)

// made are files of testdata.
func made(names ...string) (files []source.Source) {
	for _, name := range names {
		files = append(files, source.Path(filepath.Join("testdata", name)))
	}
	return files
}

// in are sources of bytes, by name and contents.
func in(files fstest.MapFS, names ...string) (all []source.Source) {
	for _, name := range names {
		all = append(all, source.FS(files, name))
	}
	return all
}

// counted are tokens 0 to n-1 of an integer type, as they lie in a file.
func counted[T uint16 | int32 | uint32](n int) []byte {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return dtype.Bytes(all)
}

// llmc is a file of llm.c with a header for so many tokens.
func llmc(number, version, count uint32, data []byte) []byte {
	head := make([]byte, 1024)
	for i, word := range []uint32{number, version, count} {
		binary.LittleEndian.PutUint32(head[4*i:], word)
	}
	return append(head, data...)
}

// read is all windows of some files, one behind the other, and what a window is.
func read[T dtype.Element](t *testing.T, files []source.Source, length int, o tokens.Options) (string, []T) {
	t.Helper()
	d, err := tokens.Open(t.Context(), files, length, o)
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	return fmt.Sprintf("%d × %v", d.Len(), d.Fields()[0]), drain.Field[T](samples, "tokens")
}

// Each of these has the tokens 0 to 19.
func TestFormats(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		o := tokens.Options{Mapped: mapped}
		want := []uint16{0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 12, 13, 14, 15, 16, 17, 18}
		for _, files := range [][]source.Source{made("gpt2.bin"), made("array.npy"), made("text.bin", "text.idx"), made("text.idx", "text.bin")} {
			what, got := read[uint16](t, files, 6, o)
			require.Equal(t, "3 × tokens uint16[7]", what)
			require.Equal(t, want, got)
		}
		what, _ := read[uint32](t, made("llama3.bin"), 6, o)
		require.Equal(t, "3 × tokens uint32[7]", what)
		what, got := read[int32](t, made("large.bin", "large.idx"), 6, o)
		require.Equal(t, "3 × tokens int32[7]", what)
		require.Equal(t, int32(18), got[20])

		o.DType = dtype.Uint16
		what, plain := read[uint16](t, made("plain.bin"), 6, o)
		require.Equal(t, "3 × tokens uint16[7]", what)
		require.Equal(t, want, plain)
		what, plain = read[uint16](t, made("olmo.npy"), 6, o)
		require.Equal(t, "3 × tokens uint16[7]", what)
		require.Equal(t, want, plain)
	}
}

// Every token but the first is the last of exactly one window's predictions, or at the end.
func TestWindowsOfShortFiles(t *testing.T) {
	const length = 1024
	for count, windows := range map[int]int{0: 0, 1: 0, 1024: 0, 1025: 1, 2048: 1, 2049: 2, 2050: 2} {
		data := counted[uint16](count)
		for _, b := range [][]byte{data, llmc(20240520, 1, uint32(count), data)} {
			files := in(fstest.MapFS{"a.bin": {Data: b}}, "a.bin")
			d, err := tokens.Open(t.Context(), files, length, tokens.Options{DType: dtype.Uint16})
			if windows == 0 {
				require.ErrorContains(t, err, fmt.Sprintf("tokens: a.bin: want at least the 1025 tokens of a window, got %d", count))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, windows, d.Len())
			require.Equal(t, int64(count), d.Tokens())
			ld, err := loader.New(d, 1, loader.Options{Shard: loader.Shard{Index: 1, Count: 2}, Last: loader.Exact})
			require.NoError(t, err)
			steps, _ := ld.Batches()
			require.Equal(t, 1, steps)
			_, got := read[uint16](t, files, length, tokens.Options{DType: dtype.Uint16})
			require.Equal(t, uint16(windows*length), got[len(got)-1])
		}
	}
}

// Files are one behind the other, windows may overlap, and each says where it lies.
func TestSeveralFilesAndStrides(t *testing.T) {
	files := in(fstest.MapFS{
		"a": {Data: counted[uint16](10)}, "b": {Data: counted[uint16](4)}, "c": {Data: llmc(20240520, 1, 7, counted[uint16](7))},
	}, "a", "b", "c")
	o := tokens.Options{DType: dtype.Uint16, Stride: 2}
	what, got := read[uint16](t, files, 3, o)
	require.Equal(t, "7 × tokens uint16[4]", what)
	require.Equal(t, []uint16{0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9, 0, 1, 2, 3, 0, 1, 2, 3, 2, 3, 4, 5}, got)
	d, err := tokens.Open(t.Context(), files, 3, o)
	require.NoError(t, err)
	require.Equal(t, loader.Origin{File: "c", Offset: 1024 + 4, Record: 1}, d.Origin(6))
	other, err := tokens.Open(t.Context(), files, 3, tokens.Options{DType: dtype.Uint16})
	require.NoError(t, err)
	require.NotEqual(t, d.Fingerprint(), other.Fingerprint())
}

func TestVocabulary(t *testing.T) {
	words := counted[uint32](40)
	binary.LittleEndian.PutUint32(words[4*33:], 50257)
	files := in(fstest.MapFS{"a": {Data: words}}, "a")
	d, err := tokens.Open(t.Context(), files, 8, tokens.Options{DType: dtype.Uint32, Vocabulary: 50257})
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.Len(t, samples, 4)
	require.Nil(t, samples[3]["none"])
	require.NoError(t, err) // window 3 ends with token 32
	d, err = tokens.Open(t.Context(), files, 9, tokens.Options{DType: dtype.Uint32, Vocabulary: 50257})
	require.NoError(t, err)
	samples, err = drain.Samples(t.Context(), d)
	require.Len(t, samples, 3)
	require.ErrorContains(t, err, "tokens: a: at byte 132: record 3: token 6: want 0 to 50256, got 50257")
	for _, c := range []dtype.Type{dtype.Int8, dtype.Int16, dtype.Int32, dtype.Int64} {
		files := in(fstest.MapFS{"a": {Data: []byte{1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}}}, "a")
		d, err := tokens.Open(t.Context(), files, 16/c.Size()-1, tokens.Options{DType: c, Vocabulary: 50257})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		require.ErrorContains(t, err, "got -1")
	}
	for _, c := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Uint64} {
		files := in(fstest.MapFS{"a": {Data: []byte{1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}}}, "a")
		d, err := tokens.Open(t.Context(), files, 16/c.Size()-1, tokens.Options{DType: c, Vocabulary: 200})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		require.ErrorContains(t, err, "want 0 to 199")
	}
}

// Every token is looked at, whatever is beside it.
func TestVocabularyOfEachToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]dtype.Type{dtype.Uint16, dtype.Int16, dtype.Uint32, dtype.Int32}).Draw(t, "type")
		limit := rapid.SampledFrom([]int{1, 100, 32768, 65535, 65536, 65537, 1 << 20}).Draw(t, "vocabulary")
		values := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 99, 100, 32767, 32768, 65534, 65535, 65536, 1 << 20, -1, -32768}), 2, 40).Draw(t, "tokens")
		var b []byte
		want := -1
		for i, v := range values {
			stored := v
			switch kind {
			case dtype.Uint16:
				stored, b = int64(uint16(v)), binary.LittleEndian.AppendUint16(b, uint16(v))
			case dtype.Int16:
				stored, b = int64(int16(v)), binary.LittleEndian.AppendUint16(b, uint16(v))
			case dtype.Uint32:
				stored, b = int64(uint32(v)), binary.LittleEndian.AppendUint32(b, uint32(v))
			case dtype.Int32:
				stored, b = int64(int32(v)), binary.LittleEndian.AppendUint32(b, uint32(v))
			}
			if want < 0 && (stored < 0 || stored >= int64(limit)) {
				want = i
			}
		}
		d, err := tokens.Open(t.Context(), in(fstest.MapFS{"a": {Data: b}}, "a"), len(values)-1, tokens.Options{DType: kind, Vocabulary: limit})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		if want < 0 {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, fmt.Sprintf("token %d: want 0 to %d, got", want, limit-1))
	})
}

func TestWhatIsRefused(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "text.idx"))
	require.NoError(t, err)
	spoiled := func(at int, b byte) []byte {
		c := append([]byte(nil), text...)
		c[at] = b
		return c
	}
	uint16s := tokens.Options{DType: dtype.Uint16}
	for want, c := range map[string]struct {
		b []byte
		o tokens.Options
	}{
		"want a header of llm.c or of NumPy, an .idx file":       {counted[uint16](30), tokens.Options{}},
		"want whole tokens of 2 bytes, got 61 bytes":             {append(counted[uint16](30), 0), uint16s},
		"at byte 0: want tokens of a text, got questions":        {llmc(20240522, 1, 5, nil), uint16s},
		"at byte 4: want version 1 of uint16 or":                 {llmc(20240520, 7, 5, nil), uint16s},
		"want a file of 1044 bytes for 10 tokens of uint16":      {llmc(20240520, 1, 10, counted[uint16](9)), uint16s},
		"at byte 8: want a number of tokens, got -1":             {llmc(20240520, 1, math.MaxUint32, nil), uint16s},
		"want uint16, as Options.DType says, got uint32":         {llmc(20240801, 7, 10, counted[uint32](10)), uint16s},
		"want a.bin among the files, to which this is the index": {text, uint16s},
		"npy: a.idx: at byte 6: want version 1.0":                {[]byte("\x93NUMPY\x09\x00 and so on"), uint16s},
	} {
		_, err := tokens.Open(t.Context(), in(fstest.MapFS{"a.idx": {Data: c.b}}, "a.idx"), 4, c.o)
		var format *source.FormatError
		require.ErrorAs(t, err, &format, want)
		require.ErrorContains(t, err, want)
	}
	for want, idx := range map[string][]byte{
		"at byte 9: want version 1, got 2":                                spoiled(9, 2),
		"at byte 17: want a type of integers: 1 to 5 or 8, got 6":         spoiled(17, 6),
		"for 259 sequences and":                                           spoiled(19, 1),
		"want a head of 34 bytes, got the end":                            text[:20],
		"want sequences and documents in a file of":                       spoiled(25, 0xff),
		"want a last sequence of whole tokens, got 9 tokens from byte 23": spoiled(34+3*4+2*8, 23),
		"a.bin: want 44 bytes, as a.idx says, got 40":                     spoiled(34+2*4, 11),
	} {
		files := in(fstest.MapFS{"a.idx": {Data: idx}, "a.bin": {Data: counted[uint16](20)}}, "a.bin", "a.idx")
		_, err := tokens.Open(t.Context(), files, 4, uint16s)
		var format *source.FormatError
		require.ErrorAs(t, err, &format, want)
		require.ErrorContains(t, err, want)
	}
	_, err = tokens.Open(t.Context(), made("gpt2.bin", "llama3.bin"), 4, tokens.Options{})
	require.ErrorContains(t, err, "llama3.bin: want uint16, as the first file has, got uint32")
	_, err = tokens.Open(t.Context(), made("gpt2.bin", "missing.bin"), 4, tokens.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = tokens.Open(t.Context(), nil, 0, tokens.Options{DType: dtype.Float32, Stride: -1, Vocabulary: -1})
	for _, option := range []string{"files is empty", "length is 0", "DType is float32", "Stride is -1", "Vocabulary is -1"} {
		require.ErrorContains(t, err, "tokens: "+option)
	}
}

// sparse makes a file of so many bytes without contents, but for some at its end.
func sparse(t *testing.T, size int64, end []byte) string {
	path := filepath.Join(t.TempDir(), "large.bin")
	f, err := os.Create(path)
	require.NoError(t, err)
	if err := f.Truncate(size - int64(len(end))); err != nil {
		t.Skipf("no sparse file of %d bytes: %v", size, err)
	}
	_, err = f.WriteAt(end, size-int64(len(end)))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return path
}

// Offsets beyond 32 bits.
func TestAFileOfFourGigabytes(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an int doesn't count the tokens")
	}
	const size = 4<<30 + 2*1024*1024 + 2
	path := sparse(t, size, counted[uint16](1025))
	for _, mapped := range []bool{false, true} {
		d, err := tokens.Open(t.Context(), []source.Source{source.Path(path)}, 1024, tokens.Options{DType: dtype.Uint16, Mapped: mapped})
		require.NoError(t, err)
		require.Equal(t, (size/2-1)/1024, d.Len())
		last := d.Len() - 1
		require.Equal(t, int64(size-2*1025), d.Origin(last).Offset)
		ld, err := loader.New(d, 1, loader.Options{})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{Position: int64(last)}, mem)
		b, err := run.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, counted[uint16](1025), ld.Layout().Rows(0, b))
		require.NoError(t, run.Close())
		require.NoError(t, d.Close())
	}
}

// A file that is cut off in the middle of an epoch is an error with the sample's place, and
// other datasets go on.
func TestAFileThatShrinks(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		path := sparse(t, 64<<20, nil)
		d, err := tokens.Open(t.Context(), []source.Source{source.Path(path)}, 2048, tokens.Options{DType: dtype.Uint16, Mapped: mapped})
		require.NoError(t, err)
		ld, err := loader.New(d, 16, loader.Options{Epochs: 1, Workers: 4})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 2)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		for n := 0; err == nil; n++ {
			if n == 100 {
				require.NoError(t, os.Truncate(path, 4096))
			}
			var b loader.Filled
			if b, err = run.Next(t.Context()); err == nil {
				mem.Put(b.Slot)
			}
		}
		var at *loader.Error
		require.ErrorAs(t, err, &at)
		require.ErrorIs(t, err, source.ErrChanged)
		require.Equal(t, path, at.Origin.File)
		require.NoError(t, run.Close())
		require.NoError(t, d.Close())
		_, err = drain.Samples(t.Context(), d)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
	_, got := read[uint16](t, made("gpt2.bin"), 6, tokens.Options{})
	require.Len(t, got, 21)
}

func TestEveryFailureOfARead(t *testing.T) {
	for _, files := range [][]source.Source{made("text.idx", "text.bin", "large.bin", "large.idx")[:2], made("gpt2.bin", "array.npy")} {
		drain.EveryFailure(t, files, func(files []source.Source) (io.Closer, error) {
			return tokens.Open(t.Context(), files, 4, tokens.Options{})
		})
	}
}

// array is a .npy file.
func array(header string, data []byte) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	return append(append(b, header...), data...)
}

func TestArraysOfNumPy(t *testing.T) {
	for descr, shape := range map[string]string{"<f4": "(10,)", ">u2": "(20,)", "<u2": "(10, 2)"} {
		b := array("{'descr': '"+descr+"', 'fortran_order': False, 'shape': "+shape+"}", counted[uint16](20))
		_, err := tokens.Open(t.Context(), in(fstest.MapFS{"a": {Data: b}}, "a"), 4, tokens.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.ErrorContains(t, err, "want an array of one dimension of little-endian integers, got "+descr)
	}
	b := array("{'descr': '>u1', 'fortran_order': False, 'shape': (5,)}", []byte{1, 2, 3, 4, 5})
	_, got := read[uint8](t, in(fstest.MapFS{"a": {Data: b}}, "a"), 4, tokens.Options{})
	require.Equal(t, []byte{1, 2, 3, 4, 5}, got)
}

// A file without a header may begin with the number that those of llm.c begin with.
func TestTokensThatLookLikeAHeader(t *testing.T) {
	o := tokens.Options{DType: dtype.Uint32}
	for _, number := range []uint32{20240520, 20240801} {
		words := dtype.Bytes([]uint32{number, 256, 7, 8, 9})
		_, got := read[uint32](t, in(fstest.MapFS{"a": {Data: words}}, "a"), 4, o)
		require.Equal(t, []uint32{number, 256, 7, 8, 9}, got)
		_, err := tokens.Open(t.Context(), in(fstest.MapFS{"a": {Data: dtype.Bytes([]uint32{number, 255, 7, 8, 9})}}, "a"), 4, o)
		require.ErrorContains(t, err, "want version 1 of uint16 or version 7 of uint32 of llm.c's files, got 255")
	}
	_, got := read[uint16](t, in(fstest.MapFS{"a": {Data: []byte("\x93NUMP")[:4]}}, "a"), 1, tokens.Options{DType: dtype.Uint16})
	require.Len(t, got, 2)
}

// index is an .idx file of uint16.
func index(documents uint64, lengths []int32, pointers []int64, modes bool) []byte {
	b := append([]byte("MMIDIDX\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x08"), make([]byte, 16)...)
	binary.LittleEndian.PutUint64(b[18:], uint64(len(lengths)))
	binary.LittleEndian.PutUint64(b[26:], documents)
	b, _ = binary.Append(b, binary.LittleEndian, lengths)
	b, _ = binary.Append(b, binary.LittleEndian, pointers)
	b = append(b, make([]byte, 8*min(documents, 10))...)
	if modes {
		b = append(b, make([]byte, len(lengths))...)
	}
	return b
}

func TestIndexesOfMegatron(t *testing.T) {
	open := func(idx []byte) error {
		files := in(fstest.MapFS{"a.idx": {Data: idx}, "a.bin": {Data: counted[uint16](20)}}, "a.bin", "a.idx")
		d, err := tokens.Open(t.Context(), files, 4, tokens.Options{})
		if err == nil {
			require.Equal(t, 4, d.Len())
		}
		return err
	}
	for _, modes := range []bool{false, true} {
		require.NoError(t, open(index(1, []int32{20}, []int64{0}, modes)))
		require.NoError(t, open(index(3, []int32{5, 15}, []int64{0, 10}, modes)))
	}
	for want, idx := range map[string][]byte{
		"a.bin: want 0 bytes, as a.idx says, got 40":                      index(0, nil, nil, false),
		"want a last sequence of whole tokens, got -1 tokens from byte 0": index(1, []int32{-1}, []int64{0}, false),
		"got 20 tokens from byte -2":                                      index(1, []int32{20}, []int64{-2}, false),
		"got 1 tokens from byte 4611686018427387906":                      index(1, []int32{1}, []int64{1<<62 + 2}, false),
		"want sequences and documents in a file of 46 bytes":              index(1<<61, []int32{20}, []int64{0}, false)[:46],
		"want 54 bytes for 1 sequences and 1 documents, got 53":           index(1, []int32{20}, []int64{0}, false)[:53],
	} {
		err := open(idx)
		var format *source.FormatError
		require.ErrorAs(t, err, &format, want)
		require.ErrorContains(t, err, want)
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"gpt2.bin", "llama3.bin", "array.npy", "text.idx", "large.idx", "plain.bin"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(b, counted[uint16](20))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		files := in(fstest.MapFS{"a.idx": {Data: a}, "a.bin": {Data: b}}, "a.idx", "a.bin")
		for _, o := range []tokens.Options{{}, {DType: dtype.Uint16, Vocabulary: 50257}} {
			for n := 1; n <= 2; n++ {
				d, err := tokens.Open(t.Context(), files[:n], 4, o)
				if err == nil && d.Len() < 1000 {
					_, err = drain.Samples(t.Context(), d)
				}
				if err == nil {
					require.NoError(t, d.Close())
					continue
				}
				var format *source.FormatError
				require.ErrorAs(t, err, &format)
				require.NotEmpty(t, format.Want)
				require.NotEmpty(t, format.Got)
			}
		}
	})
}
