package source_test

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/source/sourcetest"
)

//go:embed testdata/embedded
var embedded embed.FS

// random returns n bytes.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// write makes a file, and returns its path.
func write(t testing.TB, contents []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.bin")
	require.NoError(t, os.WriteFile(path, contents, 0o600))
	return path
}

// zipped is an archive with one file, stored or deflated.
func zipped(t *testing.T, method uint16, contents []byte) *zip.Reader {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "in/zip.bin", Method: method})
	require.NoError(t, err)
	_, err = f.Write(contents)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return r
}

func TestEverySourceKeepsThePromises(t *testing.T) {
	data := random(100_000)
	path := write(t, data)
	fixed, err := fs.ReadFile(embedded, "testdata/embedded/some.txt")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		source   source.Source
		contents []byte
	}{
		"path":                {source.Path(path), data},
		"mapped":              {source.Mapped(source.Path(path)), data},
		"two pages":           {source.Mapped(source.Path(write(t, data[:2*os.Getpagesize()]))), data[:2*os.Getpagesize()]},
		"mapped, of one byte": {source.Mapped(source.Path(write(t, []byte{0}))), []byte{0}},
		"mapped, empty":       {source.Mapped(source.Path(write(t, nil))), nil},
		"mapped MapFS":        {source.Mapped(source.FS(fstest.MapFS{"a/b": {Data: data}}, "a/b")), data},
		"empty path":          {source.Path(write(t, nil)), nil},
		"one byte":            {source.Path(write(t, []byte{7})), []byte{7}},
		"DirFS":               {source.FS(os.DirFS(filepath.Dir(path)), filepath.Base(path)), data},
		"embed":               {source.FS(embedded, "testdata/embedded/some.txt"), fixed},
		"MapFS":               {source.FS(fstest.MapFS{"a/b": {Data: data}}, "a/b"), data},
		"stored":              {source.FS(zipped(t, zip.Store, data), "in/zip.bin"), data},
		"deflated":            {source.FS(zipped(t, zip.Deflate, data), "in/zip.bin"), data},
		"empty zip":           {source.FS(zipped(t, zip.Deflate, nil), "in/zip.bin"), nil},
		"opened":              {noStat{source.Path(path)}, data},
	} {
		t.Run(name, func(t *testing.T) { sourcetest.Run(t, test.source, test.contents) })
	}
}

// noStat is a Source that is no Stater.
type noStat struct{ s source.Source }

func (n noStat) Name() string                                  { return n.s.Name() }
func (n noStat) Open(ctx context.Context) (source.File, error) { return n.s.Open(ctx) }

func TestWhatCannotBeOpened(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing")
	for name, test := range map[string]struct {
		source source.Source
		cause  error
		text   string
	}{
		"missing path": {source.Path(missing), fs.ErrNotExist, missing + ": no such file or directory"},
		"folder":       {source.Path(folder), nil, folder + ": it is a directory, want a file"},
		"no name":      {source.Path(""), nil, "a file without a name"},
		"missing name": {source.FS(fstest.MapFS{}, "missing"), fs.ErrNotExist, " missing: file does not exist"},
		"folder name":  {source.FS(fstest.MapFS{"a/b": {}}, "a"), nil, " a: it is a directory, want a file"},
		"wrong name":   {source.FS(os.DirFS(folder), "/x"), fs.ErrInvalid, " /x: invalid argument"},
		"nil FS":       {source.FS(nil, "x"), nil, " x: a nil fs.FS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.source.Open(t.Context())
			_, stat := source.Stat(t.Context(), test.source)
			for op, err := range map[string]error{"open": err, "stat": stat} {
				var told *source.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, op, told.Op)
				require.Equal(t, int64(-1), told.Offset)
				require.Contains(t, err.Error(), test.text)
				require.Contains(t, err.Error(), "source: "+op+" ")
				if test.cause != nil {
					require.ErrorIs(t, err, test.cause)
				}
			}
		})
	}
}

func TestListKeepsTheOrder(t *testing.T) {
	sources, err := source.List("b", "a/c", "a/b")
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a/c", "a/b"}, names(sources))

	sources, err = source.List()
	require.NoError(t, err)
	require.Empty(t, sources)

	_, err = source.List("a/b", "", "c", "a/./b")
	require.EqualError(t, err, "source: path 1 of 4: a file without a name\nsource: path 3 of 4, a/./b, is path 0 again")
}

func names(sources []source.Source) (all []string) {
	for _, s := range sources {
		all = append(all, s.Name())
	}
	return all
}

// What is read is what was there when the file was opened, or an error.
func TestAFileThatChangesWhileItIsOpen(t *testing.T) {
	data := random(10_000)
	for name, test := range map[string]struct {
		change func(path string) error
		after  int  // how many bytes can still be read
		told   bool // by the version
	}{
		"as it was": {func(string) error { return nil }, 10_000, false},
		"shrunk":    {func(path string) error { return os.Truncate(path, 4_000) }, 4_000, true},
		"emptied":   {func(path string) error { return os.Truncate(path, 0) }, 0, true},
		"grown":     {func(path string) error { return os.Truncate(path, 20_000) }, 10_000, true},
		"touched":   {func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }, 10_000, true},
		"replaced": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", data, 0o600), os.Rename(path+"2", path))
		}, 10_000, true},
		"removed": {os.Remove, 10_000, false},
	} {
		for kind, make := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := make(write(t, data))
				f, err := s.Open(t.Context())
				require.NoError(t, err)
				defer func() { require.NoError(t, f.Close()) }()
				require.NoError(t, test.change(s.Name()))
				readChanged(t, f, data, test.after)
				if name != "removed" {
					info, err := source.Stat(t.Context(), s)
					require.NoError(t, err)
					require.Equal(t, test.told, info.Version != f.Version())
				}
			})
		}
	}
}

// kinds are the ways to read a file of the operating system.
var kinds = map[string]func(path string) source.Source{
	"path":   source.Path,
	"mapped": func(path string) source.Source { return source.Mapped(source.Path(path)) },
}

// readChanged reads a file of which only the first bytes are there.
func readChanged(t *testing.T, f source.File, data []byte, there int) {
	p := make([]byte, 3*len(data))
	n, err := f.ReadAt(t.Context(), p, 0)
	require.Equal(t, string(data[:there]), string(p[:n]))
	require.EqualValues(t, len(data), f.Size())
	if there == len(data) {
		require.True(t, err == io.EOF, "%v", err)
		return
	}
	var told *source.Error
	require.ErrorAs(t, err, &told)
	require.ErrorIs(t, err, source.ErrChanged)
	require.NotErrorIs(t, err, io.EOF)
	require.EqualValues(t, there, told.Offset)
	require.ErrorContains(t, err, fmt.Sprintf("it had %d bytes", len(data)))
}

// An fs.FS is the user's: what it says and what it has may differ.
type oddFS struct {
	data   []byte
	size   int64 // that it says
	err    error // at the end, in place of io.EOF
	read   func(p []byte, off int64) (int, error)
	closed int
}

func (o *oddFS) Open(string) (fs.File, error) {
	if o.read != nil {
		return &oddAt{oddFile{o, bytes.NewReader(o.data)}}, nil
	}
	return &oddFile{o, bytes.NewReader(o.data)}, nil
}

type oddFile struct {
	fs *oddFS
	r  *bytes.Reader
}

func (f *oddFile) Stat() (fs.FileInfo, error) { return oddInfo{f.fs.size}, nil }
func (f *oddFile) Close() error               { f.fs.closed++; return nil }
func (f *oddFile) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF && f.fs.err != nil {
		err = f.fs.err
	}
	return n, err
}

type oddAt struct{ oddFile }

func (f *oddAt) ReadAt(p []byte, off int64) (int, error) { return f.fs.read(p, off) }

type oddInfo struct{ size int64 }

func (i oddInfo) Name() string       { return "odd" }
func (i oddInfo) Size() int64        { return i.size }
func (i oddInfo) Mode() fs.FileMode  { return 0o444 }
func (i oddInfo) ModTime() time.Time { return time.Time{} }
func (i oddInfo) IsDir() bool        { return false }
func (i oddInfo) Sys() any           { return nil }

func TestAFileSystemThatSaysWhatIsNotSo(t *testing.T) {
	own := errors.New("my own error")
	for name, test := range map[string]struct {
		fs   oddFS
		text string
	}{
		"too short":  {oddFS{data: random(10), size: 1 << 20}, "it has 10 bytes, and says 1048576"},
		"too long":   {oddFS{data: random(10), size: 9}, "it has more than the 9 bytes that it says"},
		"far longer": {oddFS{data: random(5 << 20), size: 0}, "it has more than the 0 bytes that it says"},
		"too large":  {oddFS{data: random(10), size: 1 << 60}, "it has 1152921504606846976 bytes and can be read from the front only"},
		"negative":   {oddFS{data: random(10), size: -1}, "it says that it has -1 bytes"},
		"its own":    {oddFS{data: random(10), size: 10, err: own}, "my own error"},
		"negative at": {oddFS{size: -1, read: func([]byte, int64) (int, error) {
			return 0, io.EOF
		}}, "it says that it has -1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.FS(&test.fs, "odd").Open(t.Context())
			var told *source.Error
			require.ErrorAs(t, err, &told)
			require.ErrorContains(t, err, test.text)
			require.Equal(t, test.fs.err != nil, errors.Is(err, own))
			require.Equal(t, 1, test.fs.closed)
		})
	}
}

func TestAReaderAtThatIsWrong(t *testing.T) {
	own := errors.New("my own error")
	for name, test := range map[string]struct {
		read   func(p []byte, off int64) (int, error)
		n      int
		offset int64
		text   string
		cause  error
	}{
		"nothing, no error": {func([]byte, int64) (int, error) { return 0, nil }, 0, 5, "", io.ErrNoProgress},
		"more than asked":   {func(p []byte, _ int64) (int, error) { return len(p) + 1, nil }, 0, 5, "ReadAt returned 11 for 10 bytes", nil},
		"less than none":    {func([]byte, int64) (int, error) { return -1, nil }, 0, 5, "ReadAt returned -1 for 10 bytes", nil},
		"a part":            {func([]byte, int64) (int, error) { return 4, own }, 4, 9, "my own error", own},
		"an early end":      {func([]byte, int64) (int, error) { return 4, io.EOF }, 4, 9, "ends at or before byte 9 now", source.ErrChanged},
		"end and all":       {func(p []byte, _ int64) (int, error) { return len(p), io.EOF }, 10, -1, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			odd := oddFS{size: 100, read: test.read}
			f, err := source.FS(&odd, "odd").Open(t.Context())
			require.NoError(t, err)
			n, err := f.ReadAt(t.Context(), make([]byte, 10), 5)
			require.Equal(t, test.n, n)
			if test.offset < 0 {
				require.NoError(t, err)
			} else {
				var told *source.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, test.offset, told.Offset)
				require.ErrorContains(t, err, test.text)
				require.NotErrorIs(t, err, io.EOF)
				if test.cause != nil {
					require.ErrorIs(t, err, test.cause)
				}
			}
			require.NoError(t, f.Close())
			require.Equal(t, 1, odd.closed)
		})
	}
}

// A read that panics is the caller's to recover from, and holds nothing.
func TestAReadThatPanics(t *testing.T) {
	odd := oddFS{size: 100, read: func([]byte, int64) (int, error) { panic("mine") }}
	f, err := source.FS(&odd, "odd").Open(t.Context())
	require.NoError(t, err)
	require.PanicsWithValue(t, "mine", func() { _, _ = f.ReadAt(t.Context(), make([]byte, 1), 0) })
	require.NoError(t, f.Close())
	require.Equal(t, 1, odd.closed)
}

// A file is closed when the last read that was under way has returned, and Close waits
// for none.
func TestCloseDuringARead(t *testing.T) {
	in, out := make(chan int), make(chan int)
	odd := oddFS{size: 100, read: func(p []byte, _ int64) (int, error) { in <- 1; <-out; return len(p), nil }}
	f, err := source.FS(&odd, "odd").Open(t.Context())
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- source.ReadFull(context.Background(), f, make([]byte, 1), 0) }()
	<-in
	require.NoError(t, f.Close())
	require.Zero(t, odd.closed)
	_, err = f.ReadAt(t.Context(), make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	out <- 1
	require.NoError(t, <-done)
	require.Equal(t, 1, odd.closed)
	require.NoError(t, f.Close())
	require.Equal(t, 1, odd.closed)
}

func TestReaderAtIsOfItsContext(t *testing.T) {
	f, err := source.Path(write(t, []byte("some bytes"))).Open(t.Context())
	require.NoError(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r := io.NewSectionReader(source.ReaderAt(ctx, f), 5, f.Size()-5)
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "bytes", string(all))
	cancel()
	_, err = r.ReadAt(all, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestReadingAllocatesNothing(t *testing.T) {
	f, err := source.Path(write(t, random(1000))).Open(t.Context())
	require.NoError(t, err)
	defer f.Close()
	p, ctx := make([]byte, 1000), t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = f.ReadAt(ctx, p, 0) }))
}

func TestFingerprints(t *testing.T) {
	folder := func(sizes ...int) (sources []source.Source) {
		dir := t.TempDir()
		for i, size := range sizes {
			name := filepath.Join(dir, "part"+string(rune('0'+i)), "data")
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
			require.NoError(t, os.WriteFile(name, random(size), 0o600))
			sources = append(sources, source.Path(name))
		}
		return sources
	}
	of := func(sources ...source.Source) uint64 {
		t.Helper()
		sum, err := source.Fingerprint(t.Context(), sources)
		require.NoError(t, err)
		return sum
	}
	exactly := func(sources ...source.Source) uint64 {
		t.Helper()
		sum, err := source.FingerprintVersions(t.Context(), sources)
		require.NoError(t, err)
		return sum
	}
	a, copied, other := folder(10, 20), folder(10, 20), folder(10, 21)
	require.Equal(t, of(a...), of(copied...), "in another folder")
	require.NotEqual(t, exactly(a...), exactly(copied...))
	require.NotEqual(t, of(a...), of(other...), "another size")
	require.NotEqual(t, of(a...), of(a[1], a[0]), "another order")
	require.NotEqual(t, of(a...), of(a[0]), "fewer")
	require.NotEqual(t, of(a...), of(a[0], source.FS(fstest.MapFS{"part2/data": {Data: random(20)}}, "part2/data")), "another name")
	require.Equal(t, of(a[0]), of(copied[0]))
	require.Equal(t, of(), of())

	before, exact := of(a...), exactly(a...)
	require.NoError(t, os.Chtimes(a[1].Name(), time.Time{}, time.Unix(1, 0)))
	require.Equal(t, before, of(a...), "contents aren't covered")
	require.NotEqual(t, exact, exactly(a...), "versions are")

	_, err := source.Fingerprint(t.Context(), append(a, source.Path("missing")))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
