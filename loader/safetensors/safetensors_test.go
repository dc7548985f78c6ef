package safetensors_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/safetensors"
	"github.com/leat-go/leat/loader/source"
)

// made are files of testdata, which the safetensors package has written.
func made(names ...string) (files []source.Source) {
	for _, name := range names {
		files = append(files, source.Path(filepath.Join("testdata", name+".safetensors")))
	}
	return files
}

// in is a source of a file with such a header and so many bytes of elements.
func in(header string, elements int) []source.Source {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(append(b, header...), make([]byte, elements)...)
	return []source.Source{source.FS(fstest.MapFS{"a": {Data: b}}, "a")}
}

func counted[T float32 | int64](n int) (all []T) {
	for i := range n {
		all = append(all, T(i))
	}
	return all
}

func TestWhatSafetensorsWrites(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		d, err := safetensors.Open(t.Context(), made("features"), safetensors.Options{Mapped: mapped})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"latent float32[2 3]", "label int64", "half float16[2]", "brain bfloat16[2]", "mask bool[2]", "none uint8[0]"},
			fields(d))
		samples, err := drain.Samples(t.Context(), d)
		require.NoError(t, err)
		require.Equal(t, counted[float32](24), drain.Field[float32](samples, "latent"))
		require.Equal(t, counted[int64](4), drain.Field[int64](samples, "label"))
		require.Equal(t, []uint16{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}, drain.Field[uint16](samples, "half"))
		require.Equal(t, []uint16{0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0}, drain.Field[uint16](samples, "brain"))
		require.Equal(t, []bool{false, true, true, true, true, true, true, true}, drain.Field[bool](samples, "mask"))
		require.NoError(t, d.Close())
		_, err = drain.Samples(t.Context(), d)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

func fields(d loader.Dataset) (all []string) {
	for _, f := range d.Fields() {
		all = append(all, f.String())
	}
	return all
}

// Files one behind the other, in which other tensors are passed over.
func TestTensorsOfSeveralFiles(t *testing.T) {
	files := made("features", "more")
	o := safetensors.Options{Tensors: []string{"latent", "label"}}
	d, err := safetensors.Open(t.Context(), files, o)
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, []string{"latent float32[2 3]", "label int64"}, fields(d))
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, append(counted[float32](24), counted[float32](12)...), drain.Field[float32](samples, "latent"))
	require.Equal(t, files[1].Name(), d.Origin(5).File)
	require.Equal(t, int64(1), d.Origin(5).Record)
	turned, err := safetensors.Open(t.Context(), files, safetensors.Options{Tensors: []string{"label", "latent"}})
	require.NoError(t, err)
	require.NotEqual(t, d.Fingerprint(), turned.Fingerprint())
	require.NoError(t, turned.Close())
	for want, o := range map[string]safetensors.Options{
		`want a tensor "mask"`: {Tensors: []string{"mask"}},
		"small: want elements of a type that Leat has, got F8_E4M3": {Tensors: []string{"small"}},
		"scale: want an array of one dimension or more":             {Tensors: []string{"scale"}},
	} {
		_, err := safetensors.Open(t.Context(), made("more"), o)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.ErrorContains(t, err, want)
	}
	_, err = safetensors.Open(t.Context(), made("empty"), safetensors.Options{})
	require.ErrorContains(t, err, "want one array or more, got none")
	_, err = safetensors.Open(t.Context(), nil, safetensors.Options{Tensors: []string{"a", "a"}})
	require.ErrorContains(t, err, "safetensors: files is empty")
	require.ErrorContains(t, err, `Tensors[1] is "a" again`)
	_, err = safetensors.Open(t.Context(), made("missing"), safetensors.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestHeader(t *testing.T) {
	f, err := made("features")[0].Open(t.Context())
	require.NoError(t, err)
	defer f.Close()
	h, err := safetensors.ReadHeader(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"made by": "testdata/make.py", "quote": "\"}"}, h.Metadata)
	require.Len(t, h.Tensors, 6)
	require.Equal(t, safetensors.Tensor{Name: "label", Kind: "I64", DType: dtype.Int64, Shape: []int{4}, Offset: 448, Bytes: 32}, h.Tensors[0])
}

func TestBrokenFilesSayWhere(t *testing.T) {
	const good = `"x":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}`
	for header, want := range map[string]string{
		"":                                   `want an object that begins with "{", got ""`,
		" {" + good + "}":                    `want an object that begins with "{", got " "`,
		"{" + good:                           "got the end of the header",
		"{" + good + "} x":                   `want spaces behind the header's object, got " x"`,
		"{" + good + "," + good + "}":        `x: want each name once, got "x" again`,
		`{"x":{"dtype":"U8","dtype":"U8"}}`:  `dtype: want each name once`,
		`{"__metadata__":{"a":"b","a":"c"}}`: `a: want each name once`,
		`{"__metadata__":{"a":1}}`:           "want a header of JSON",
		`{"x":[]}`:                           "want an object, got [",
		`{"x":{"dtype":"U8","shape":[2,3],"data_offsets":[0,5]}}`:                                                   "x: want 6 bytes for U8[2 3], got 5",
		`{"x":{"dtype":"U8","shape":[2,3],"offsets":[0,6]}}`:                                                        `x: want dtype, shape and data_offsets, got "offsets"`,
		`{"x":{"dtype":"U8","data_offsets":[0,6]}}`:                                                                 "x: want dtype, shape and data_offsets, got less",
		`{"x":{"dtype":"U8","shape":[6],"data_offsets":[6,0]}}`:                                                     "x: want data_offsets: a beginning and an end, got [6 0]",
		`{"x":{"dtype":"U8","shape":[6],"data_offsets":[0]}}`:                                                       "x: want data_offsets: a beginning and an end, got [0]",
		`{"x":{"dtype":"U8","shape":[6],"data_offsets":[0,3,6]}}`:                                                   "x: want data_offsets: a beginning and an end, got [0 3 6]",
		`{"x":{"dtype":"U8","shape":[6]}}`:                                                                          "x: want data_offsets: a beginning and an end, got []",
		`{"x":{"shape":[6],"data_offsets":[0,6]}}`:                                                                  "x: want dtype, shape and data_offsets, got less",
		`{"x":{"dtype":"?","shape":[6],"data_offsets":[0,18446744073709551615]}}`:                                   "x: want data_offsets: a beginning and an end",
		`{"x":{"dtype":"?","shape":[9223372036854775808],"data_offsets":[0,6]}}`:                                    "want a shape of no more elements than there can be",
		`{"x":{"dtype":"U8","shape":[-6],"data_offsets":[0,6]}}`:                                                    "want a header of JSON",
		`{"x":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,6]}}`:                                 "want a shape of no more elements than there can be",
		`{"x":{"dtype":"U8","shape":[5],"data_offsets":[1,6]}}`:                                                     "x: want its first byte at 0, where the tensor before it ends, got 1",
		`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[3],"data_offsets":[3,6]}}`: "y: want its first byte at 4",
		`{"x":{"dtype":"U8","shape":[7],"data_offsets":[0,7]}}`:                                                     "x: want 7 bytes of elements, got the end of the file behind 6",
		`{"x":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}}`:                                                     "want the end of the file behind the last tensor, got 1 bytes more",
		`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}`: "y: want 4 samples, as x has, got 2",
		`{"":{"dtype":"U8","shape":[6],"data_offsets":[0,6]}}`:                                                      "want",
	} {
		_, err := safetensors.Open(t.Context(), in(header, 6), safetensors.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, header)
		require.ErrorContains(t, err, want, header)
		require.Equal(t, "a", format.File)
	}
	for want, b := range map[string]string{
		"want 8 bytes with the header's length, got the end of the file": "\x00",
		"want a header of at most 100000000 bytes, got 100000001":        "\x01\xe1\xf5\x05\x00\x00\x00\x00{}",
		"want a header of 99999999 bytes, got the end of the file":       "\xff\xe0\xf5\x05\x00\x00\x00\x00{}",
		"bytes, got 18446744073709551615":                                "\xff\xff\xff\xff\xff\xff\xff\xff{}",
	} {
		_, err := safetensors.Open(t.Context(), []source.Source{source.FS(fstest.MapFS{"a": {Data: []byte(b)}}, "a")}, safetensors.Options{})
		require.ErrorContains(t, err, want)
	}
	d, err := safetensors.Open(t.Context(), in("{"+good+"}   ", 6), safetensors.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, d.Len())
	require.Equal(t, dtype.Uint8, d.Fields()[0].DType)
}

func TestEveryFailureOfARead(t *testing.T) {
	drain.EveryFailure(t, made("features", "more"), func(files []source.Source) (io.Closer, error) {
		return safetensors.Open(t.Context(), files, safetensors.Options{Tensors: []string{"latent"}})
	})
}

// Files of equal size and name with other headers are other data.
func TestTheFingerprintKnowsTheHeader(t *testing.T) {
	sum := func(header string) uint64 {
		d, err := safetensors.Open(t.Context(), in(header, 4), safetensors.Options{Tensors: []string{"x"}})
		require.NoError(t, err)
		return d.Fingerprint()
	}
	const x, y = `"x":{"dtype":"U8","shape":[2],"data_offsets":[%d,%d]}`, `"y":{"dtype":"U8","shape":[2],"data_offsets":[%d,%d]}`
	first := fmt.Sprintf("{"+x+","+y+"}", 0, 2, 2, 4)
	require.Equal(t, sum(first), sum(first))
	require.NotEqual(t, sum(first), sum(fmt.Sprintf("{"+x+","+y+"}", 2, 4, 0, 2)))
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"features", "more", "empty"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".safetensors"))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := safetensors.Open(t.Context(), []source.Source{source.FS(fstest.MapFS{"a": {Data: b}}, "a")}, safetensors.Options{})
		if err == nil && d.Len() > 0 && d.Len() < 1000 {
			_, err = drain.Samples(t.Context(), d)
		}
		if err != nil {
			var format *source.FormatError
			require.ErrorAs(t, err, &format)
			require.NotEmpty(t, format.Want)
			require.NotEmpty(t, format.Got)
		}
	})
}

// Features of many layers are found among each other, in the order of the header, and those that
// are asked for alone.
func TestManyTensors(t *testing.T) {
	const n = 10_000
	var header strings.Builder
	for i := range n {
		fmt.Fprintf(&header, `,"t%d":{"dtype":"U8","shape":[2],"data_offsets":[%d,%d]}`, i, 2*i, 2*i+2)
	}
	files := in("{"+header.String()[1:]+"}", 2*n)
	for _, none := range [][]string{nil, {}} {
		d, err := safetensors.Open(t.Context(), files, safetensors.Options{Tensors: none})
		require.NoError(t, err)
		require.Len(t, d.Fields(), n)
		require.Equal(t, "t9999 uint8", d.Fields()[n-1].String())
		require.NoError(t, d.Close())
	}
	d, err := safetensors.Open(t.Context(), files, safetensors.Options{Tensors: []string{"t7000", "t3"}})
	require.NoError(t, err)
	require.Equal(t, []string{"t7000 uint8", "t3 uint8"}, fields(d))
	require.NoError(t, d.Close())
}
