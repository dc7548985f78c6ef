package npy_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
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
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
)

// made is a file of testdata, which NumPy has written.
func made(names ...string) (files []source.Source) {
	for _, name := range names {
		files = append(files, source.Path(filepath.Join("testdata", name)))
	}
	return files
}

// file is a .npy file of version 1 with a header as it is given.
func file(header string, data ...byte) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

// in is a source of bytes.
func in(name string, b []byte) []source.Source {
	return []source.Source{source.FS(fstest.MapFS{name: {Data: b}}, name)}
}

// read is all of a field of some files, and what the field is.
func read[T dtype.Element](t *testing.T, files []source.Source, o npy.Options, field string) (string, []T) {
	t.Helper()
	d, err := npy.Open(t.Context(), files, o)
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for _, f := range d.Fields() {
		if f.Name == field {
			return fmt.Sprintf("%d × %v", d.Len(), f), drain.Field[T](samples, field)
		}
	}
	require.Fail(t, "no such field", "%s of %v", field, d.Fields())
	return "", nil
}

func counted[T float32 | float64 | int16 | int32 | int64 | uint8 | uint16](n int) (all []T) {
	for i := range n {
		all = append(all, T(i))
	}
	return all
}

// All of these are arange, saved by NumPy.
func TestWhatNumPySaves(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		o := npy.Options{Name: "x", Mapped: mapped}
		for name, shape := range map[string]string{
			"int64": "4 × x int64[3]", "version2": "4 × x int64[3]", "version3": "4 × x int64[3]",
		} {
			what, got := read[int64](t, made(name+".npy"), o, "x")
			require.Equal(t, shape, what)
			require.Equal(t, counted[int64](12), got)
		}
		what, bytes := read[uint8](t, made("uint8.npy"), o, "x")
		require.Equal(t, "5 × x uint8[2 2]", what)
		require.Equal(t, counted[uint8](20), bytes)
		what, doubles := read[float64](t, made("float64.npy"), o, "x")
		require.Equal(t, "6 × x float64", what)
		require.Equal(t, counted[float64](6), doubles)
		what, half := read[uint16](t, made("float16.npy"), o, "x")
		require.Equal(t, "3 × x float16[2]", what)
		require.Equal(t, []uint16{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500}, half)
		what, bools := read[bool](t, made("bool.npy"), o, "x")
		require.Equal(t, "4 × x bool[2]", what)
		require.Equal(t, []bool{false, true, true, true, true, true, true, true}, bools)
		what, ints := read[int32](t, made("big.npy"), o, "x")
		require.Equal(t, "3 × x int32[2]", what)
		require.Equal(t, counted[int32](6), ints)
		_, doubles = read[float64](t, made("big64.npy"), o, "x")
		require.Equal(t, counted[float64](6), doubles)
		what, floats := read[float32](t, made("fortran.npy"), o, "x")
		require.Equal(t, "4 × x float32[3 5 2]", what)
		require.Equal(t, counted[float32](120), floats)
		_, words := read[uint16](t, made("fortranbig.npy"), o, "x")
		require.Equal(t, counted[uint16](6), words)
		what, brain := read[uint16](t, made("bfloat16.npy"), npy.Options{Void: dtype.BFloat16}, "data")
		require.Equal(t, "3 × data bfloat16[2]", what)
		require.Equal(t, []uint16{0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0}, brain)
		what, _ = read[float32](t, made("nobytes.npy"), o, "x")
		require.Equal(t, "3 × x float32[0]", what)
	}
	d, err := npy.Open(t.Context(), made("empty.npy"), npy.Options{})
	require.NoError(t, err)
	require.Zero(t, d.Len())
	_, err = loader.New(d, 1, loader.Options{})
	require.ErrorIs(t, err, loader.ErrNoSamples)
}

func TestArchives(t *testing.T) {
	for _, name := range []string{"stored.npz", "deflated.npz"} {
		for _, mapped := range []bool{false, true} {
			o := npy.Options{Mapped: mapped}
			what, images := read[float32](t, made(name), o, "image")
			require.Equal(t, "6 × image float32[2 3]", what)
			require.Equal(t, counted[float32](36), images)
			what, labels := read[int64](t, made(name), o, "label")
			require.Equal(t, "6 × label int64", what)
			require.Equal(t, counted[int64](6), labels)
			_, turned := read[int16](t, made(name), o, "turned")
			require.Equal(t, counted[int16](24), turned)

			o.Arrays = []string{"turned", "label"}
			d, err := npy.Open(t.Context(), made(name), o)
			require.NoError(t, err)
			require.Equal(t, "[turned int16[4] label int64]", fmt.Sprint(d.Fields()))
			require.NoError(t, d.Close())
		}
	}
	both, err := npy.Open(t.Context(), made("stored.npz", "deflated.npz"), npy.Options{})
	require.NoError(t, err)
	require.Equal(t, 12, both.Len())
	require.NoError(t, both.Close())

	wrong(t, made("other.npz"), npy.Options{}, "mean.npy", "one dimension or more")
	what, _ := read[float32](t, made("other.npz"), npy.Options{Arrays: []string{"image"}}, "image")
	require.Equal(t, "6 × image float32[2]", what)
	wrong(t, made("stored.npz", "other.npz"), npy.Options{}, "", "the arrays [image label turned] of the first archive")
	wrong(t, made("stored.npz"), npy.Options{Arrays: []string{"label", "none"}}, "", `the array "none"`)
	wrong(t, made("stored.npz"), npy.Options{Arrays: []string{"turned"}, MemoryBytes: 47}, "turned.npy", "the 47 bytes that are left")
	wrong(t, made("deflated.npz"), npy.Options{MemoryBytes: 100}, "image.npy", "a compressed array of at most the 100 bytes")
}

// Files one behind the other are one dataset, and each sample says where it lies.
func TestFilesOneBehindTheOther(t *testing.T) {
	d, err := npy.Open(t.Context(), made("int64.npy", "version2.npy"), npy.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, 8, d.Len())
	require.Equal(t, loader.Origin{File: filepath.Join("testdata", "version2.npy"), Offset: 128 + 2*24, Record: 2}, d.Origin(6))
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, append(counted[int64](12), counted[int64](12)...), drain.Field[int64](samples, "data"))

	wrong(t, made("int64.npy", "uint8.npy"), npy.Options{}, "data", "data int64[3], as in the first file")
	wrong(t, made("int64.npy", "stored.npz"), npy.Options{}, "", "the 1 arrays of the first file")
}

// wrong makes sure that files are refused, and what the error names.
func wrong(t *testing.T, files []source.Source, o npy.Options, field, text string) {
	t.Helper()
	_, err := npy.Open(t.Context(), files, o)
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.Equal(t, "npy", format.Format)
	require.Equal(t, files[len(files)-1].Name(), format.File)
	if field != "" {
		require.Contains(t, []string{field, strings.TrimSuffix(field, ".npy")}, format.Field)
	}
	require.ErrorContains(t, err, text)
}

func TestWhatIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"struct": "a structure", "text": "text", "date": "dates", "complex": "complex numbers",
		"object": "objects, which are pickled programs", "scalar": "a single element", "bfloat16": "Options.Void",
	} {
		wrong(t, made(name+".npy"), npy.Options{}, "", text)
	}
	_, err := npy.Open(t.Context(), nil, npy.Options{MemoryBytes: -1, Void: 99, Arrays: []string{"a", "a"}})
	for _, option := range []string{"files is empty", "MemoryBytes is -1", "Void is", `Arrays[1] is "a" again`} {
		require.ErrorContains(t, err, "npy: "+option)
	}
	_, err = npy.Open(t.Context(), made("missing.npy"), npy.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Headers that NumPy has written at some time.
func TestHeadersOfAllTimes(t *testing.T) {
	six := counted[uint8](6)
	for _, header := range []string{
		"{'descr': '|u1', 'fortran_order': False, 'shape': (np.int64(2), np.int64(3)), }",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }\n",
		`{"shape": (2, 3), "descr": "u1", "fortran_order": False}`,
		"{'shape':(2,3,),'fortran_order':False,'descr':'=u1'}   \n",
		" { 'descr' : '<u1' , 'fortran_order' : False , 'shape' : [ 2 , 3 ] } ",
		"{'descr': '|u1', 'fortran_order': False, 'shape': (numpy.uint32(2), np.longlong(3))}",
	} {
		what, got := read[uint8](t, in("a.npy", file(header, six...)), npy.Options{}, "data")
		require.Equal(t, "2 × data uint8[3]", what, header)
		require.Equal(t, six, got)
	}
	what, got := read[uint8](t, in("a.npy", file("{'descr': '|u1', 'fortran_order': True, 'shape': (6,)}", six...)), npy.Options{}, "data")
	require.Equal(t, "6 × data uint8", what)
	require.Equal(t, six, got)
}

func TestBrokenFilesSayWhere(t *testing.T) {
	good := "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"
	with := func(old, text string) []byte { return file(strings.Replace(good, old, text, 1), counted[uint8](6)...) }
	for want, b := range map[string][]byte{
		`at byte 0: want "\x93NUMPY", got "garbag"`:                           []byte("garbage, and more of it"),
		"a .npy file of 10 bytes or more":                                     []byte("\x93NUMPY"),
		"at byte 6: want version 1.0, 2.0 or 3.0, got 4.0":                    append([]byte("\x93NUMPY\x04"), make([]byte, 20)...),
		"a header of at most 1048576 bytes, got 4294967295":                   []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff123456"),
		"a header of 65535 bytes, got the end of the file":                    []byte("\x93NUMPY\x01\x00\xff\xff123456"),
		"the header's length, got the end of the file":                        []byte("\x93NUMPY\x02\x00\xff\xff"),
		`at byte 60: want a string, an integer, True, False, None or a tuple`: with("(2, 3)", "shape(2)"),
		`got "x.int64(2"`:                                                              with("(2, 3)", "(x.int64(2), 3)"),
		"at byte 61: want an integer of 64 bits":                                       with("2,", "99999999999999999999,"),
		"dimension 0 of the shape: an integer of 0 to":                                 with("2,", "-2,"),
		"dimension 1 of the shape: an integer of 0 to 9223372036854775807, got 3.":     with("3)", "'3.')"),
		"shape: a tuple, got 6":                                                        with("(2, 3)", "6"),
		`each key once, got "descr" again`:                                             with("}", "'descr': '|i1'}"),
		"the keys descr, fortran_order and shape, got 4 keys":                          with("}", "'more': 1}"),
		`want the key "shape", got the end of the header`:                              with("'shape': (2, 3), ", ""),
		"fortran_order: True or False, got 1":                                          with("False", "1"),
		"a string that ends":                                                           with("3), }", "3), 'x"),
		`want "," or "}", got the end of the header`:                                   with(", }", ""),
		"at most 16 brackets in one another":                                           with("'|u1'", strings.Repeat("[", 40)),
		"at most 64 dimensions, got 65":                                                with("2,", strings.Repeat("1,", 64)),
		`want the end of the header, got "x"`:                                          with("}", "} x"),
		"want 60 bytes of the elements of |u1[20 3], got the end of the file behind 6": with("2,", "20,"),
		"want the end of the file behind the elements of |u1[1 3], got 3 bytes more":   with("2,", "1,"),
		"which are no more than fit in memory":                                         with("2,", "4611686018427387904, 4,"),
		`got "<u3"`:                                                                    with("|u1", "<u3"),
		`got ">>i4"`:                                                                   with("|u1", ">>i4"),
		"floating-point numbers of this width":                                         with("|u1", "<f16"),
	} {
		_, err := npy.Open(t.Context(), in("a.npy", b), npy.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, "%s", b)
		require.ErrorContains(t, err, want)
		require.Equal(t, "a.npy", format.File)
	}
	d, err := npy.Open(t.Context(), in("a.npy", file("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 2)}", 0, 1, 1, 7)), npy.Options{})
	require.NoError(t, err)
	samples, err := drain.Samples(t.Context(), d)
	require.Len(t, samples, 1)
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.Equal(t, int64(1), format.Record)
	require.Equal(t, int64(10+57+3), format.Offset)
	require.ErrorContains(t, err, "want 0 or 1, got 7")
}

// archive makes a zip archive of entries, stored or deflated, and lets the headers be spoiled.
func archive(t testing.TB, method uint16, spoil func(*zip.FileHeader), entries ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		data := []byte(entries[i+1])
		h := &zip.FileHeader{Name: entries[i], Method: method, CRC32: crc32.ChecksumIEEE(data), UncompressedSize64: uint64(len(data))}
		if method == zip.Deflate {
			var deflated bytes.Buffer
			w, err := flate.NewWriter(&deflated, flate.BestSpeed)
			require.NoError(t, err)
			_, err = w.Write(data)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			data = deflated.Bytes()
		}
		h.CompressedSize64 = uint64(len(data))
		if spoil != nil {
			spoil(h)
		}
		w, err := z.CreateRaw(h)
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestBrokenArchivesSayWhere(t *testing.T) {
	one := string(file("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}", counted[uint8](6)...))
	bomb := string(file("{'descr': '|u1', 'fortran_order': False, 'shape': (10000000,)}", make([]byte, 1e7)...))
	for want, b := range map[string][]byte{
		"a zip archive":                             []byte("PK\x03\x04 and no more"),
		"whose names end in .npy":                   archive(t, zip.Store, nil, "a.npy", one, "b.txt", "text"),
		"each array once, got a.npy again":          archive(t, zip.Store, nil, "a.npy", one, "a.npy", one),
		"2 samples, as a has":                       archive(t, zip.Store, nil, "a.npy", one, "b.npy", string(file("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", 0))),
		"one array or more, got none":               archive(t, zip.Store, nil),
		"an entry that is not encrypted":            archive(t, zip.Store, func(h *zip.FileHeader) { h.Flags |= 1 }, "a.npy", one),
		"stored (0) or deflated (8), got method 12": archive(t, zip.Store, func(h *zip.FileHeader) { h.Method = 12 }, "a.npy", one),
		"an entry that lies in the file":            archive(t, zip.Store, func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 40 }, "a.npy", one),
		"whole deflated data":                       archive(t, zip.Deflate, func(h *zip.FileHeader) { h.CRC32++ }, "a.npy", one),
		"at most the 1000000 bytes that are left":   archive(t, zip.Deflate, nil, "a.npy", bomb),
		"whole deflated data, got zip: checksum":    archive(t, zip.Deflate, func(h *zip.FileHeader) { h.CRC32 = 1 }, "a.npy", bomb[:100000]),
		"got zip: not a valid zip file":             archive(t, zip.Deflate, func(h *zip.FileHeader) { h.UncompressedSize64 = 109 }, "a.npy", bomb[:200]),
	} {
		_, err := npy.Open(t.Context(), in("a.npz", b), npy.Options{MemoryBytes: 1e6})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, want)
		require.ErrorContains(t, err, want)
	}
}

// Copies of the files in another folder have the same fingerprint, and other contents of an
// archive another one.
func TestFingerprint(t *testing.T) {
	folder := t.TempDir()
	sum := func(files []source.Source, o npy.Options) uint64 {
		d, err := npy.Open(t.Context(), files, o)
		require.NoError(t, err)
		defer d.Close()
		return d.Fingerprint()
	}
	b, err := os.ReadFile(filepath.Join("testdata", "stored.npz"))
	require.NoError(t, err)
	path := filepath.Join(folder, "stored.npz")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	first := sum(made("stored.npz"), npy.Options{})
	require.Equal(t, first, sum(made("stored.npz"), npy.Options{Mapped: true}))
	require.Equal(t, first, sum([]source.Source{source.Path(path)}, npy.Options{}))
	require.NotEqual(t, first, sum(made("stored.npz"), npy.Options{Arrays: []string{"label"}}))
	require.NotEqual(t, sum(made("int64.npy"), npy.Options{}), sum(made("version2.npy"), npy.Options{}))
	one := archive(t, zip.Store, nil, "a.npy", string(file("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", 1, 2)))
	two := archive(t, zip.Store, nil, "a.npy", string(file("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", 2, 2)))
	require.NotEqual(t, sum(in("a", one), npy.Options{}), sum(in("a", two), npy.Options{}))
}

// A file that is cut off while it is read costs an error with its name, and nothing else.
func TestAFileThatShrinks(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "large.npy")
		f, err := os.Create(path)
		require.NoError(t, err)
		_, err = f.Write(file("{'descr': '|u1', 'fortran_order': False, 'shape': (16384, 4096)}"))
		require.NoError(t, err)
		header, err := f.Seek(0, io.SeekEnd)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(header+64<<20))
		require.NoError(t, f.Close())
		d, err := npy.Open(t.Context(), []source.Source{source.Path(path)}, npy.Options{Mapped: mapped})
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
		require.Equal(t, int64(at.Sample), at.Origin.Record)
		require.NoError(t, run.Close())
		require.NoError(t, d.Close())
		require.ErrorIs(t, readOne(d), fs.ErrClosed)
	}
}

func readOne(d loader.Dataset) error {
	_, err := drain.Samples(context.Background(), d)
	return err
}

// More samples and more elements than are turned into rows at a time.
func TestLargeArraysInFortranOrder(t *testing.T) {
	for _, shape := range [][3]int{{20_000, 2, 3}, {9_000, 7, 11}, {3, 300, 400}} {
		n, a, b := shape[0], shape[1], shape[2]
		data := make([]uint16, n*a*b)
		for i := range n {
			for j := range a {
				for k := range b {
					data[i+n*(j+a*k)] = uint16(7*i + 31*j + 1009*k)
				}
			}
		}
		header := fmt.Sprintf("{'descr': '<u2', 'fortran_order': True, 'shape': (%d, %d, %d)}", n, a, b)
		d, err := npy.Open(t.Context(), in("a.npy", file(header, dtype.Bytes(data)...)), npy.Options{})
		require.NoError(t, err)
		ld, err := loader.New(d, n, loader.Options{Epochs: 1})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{}, mem)
		batch, err := run.Next(t.Context())
		require.NoError(t, err)
		wrong := 0
		for at, got := range dtype.As[uint16](ld.Layout().Rows(0, batch)) {
			if got != uint16(7*(at/(a*b))+31*(at/b%a)+1009*(at%b)) {
				wrong++
			}
		}
		require.Zero(t, wrong, shape)
		require.NoError(t, run.Close())
	}
}

// A header that is cut off anywhere is an error.
func TestHeadersThatAreCutOff(t *testing.T) {
	const good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"
	for n := range len(good) {
		_, err := npy.Open(t.Context(), in("a.npy", file(good[:n], counted[uint8](6)...)), npy.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, good[:n])
	}
	many := strings.Repeat("('x', '<i4', (2,)), ", 40) // one behind the other, not in one another
	wrong(t, in("a.npy", file("{'descr': ["+many+"], 'fortran_order': False, 'shape': (2,)}")), npy.Options{}, "", "a structure")
	wrong(t, in("a.npy", file("{'descr': '', 'fortran_order': False, 'shape': (2,)}")), npy.Options{}, "", `got ""`)
	wrong(t, in("a.npy", file("{'descr': 7, 'fortran_order': False, 'shape': (2,)}")), npy.Options{}, "", "got 7")
	wrong(t, in("a.npy", file("{'descr': '|V3', 'fortran_order': False, 'shape': (2,)}", counted[uint8](6)...)), npy.Options{Void: dtype.BFloat16}, "", "Options.Void")
	wrong(t, in("a.npy", file("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 2)}")), npy.Options{}, "", "no more than fit in memory")
	wrong(t, in("a.npy", file("{'descr': '|u1', 'fortran_order': False, 'shape': (np.int64(99999999999999999999),)}")), npy.Options{}, "", "an integer of 64 bits")
}

func TestEveryFailureOfARead(t *testing.T) {
	drain.EveryFailure(t, made("stored.npz", "deflated.npz"), func(files []source.Source) (io.Closer, error) {
		return npy.Open(t.Context(), files, npy.Options{})
	})
	drain.EveryFailure(t, made("int64.npy", "version2.npy"), func(files []source.Source) (io.Closer, error) {
		return npy.Open(t.Context(), files, npy.Options{})
	})
	drain.EveryFailure(t, made("fortran.npy"), func(files []source.Source) (io.Closer, error) {
		return npy.Open(t.Context(), files, npy.Options{})
	})
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"int64", "fortran", "struct", "bfloat16", "scalar", "empty", "version3"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".npy"))
		require.NoError(f, err)
		f.Add(b)
	}
	for _, name := range []string{"stored", "deflated", "other"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".npz"))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add(file("{'descr': '|u1', 'fortran_order': False, 'shape': (np.int64(2), 3L)}", 1, 2, 3, 4, 5, 6))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := npy.Open(t.Context(), in("a", b), npy.Options{MemoryBytes: 1 << 20, Void: dtype.BFloat16})
		if err != nil {
			var format *source.FormatError
			require.ErrorAs(t, err, &format)
			require.NotEmpty(t, format.Want)
			require.NotEmpty(t, format.Got)
			return
		}
		if d.Len() == 0 || d.Len() > 1000 {
			return
		}
		samples, err := drain.Samples(t.Context(), d)
		var format *source.FormatError
		var option *loader.OptionError
		if err != nil && !errors.As(err, &format) && !errors.As(err, &option) {
			require.NoError(t, err)
		}
		if err == nil {
			require.Len(t, samples, d.Len())
		}
		require.NoError(t, d.Close())
	})
}
