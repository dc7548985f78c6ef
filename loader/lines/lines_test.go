package lines_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
)

// text is a field with a line.
var text = []loader.Field{{Name: "text", DType: dtype.Uint8, Shape: []int{100}, Ragged: &loader.Ragged{}}}

func encode(_ context.Context, line []byte, row *loader.Row) error {
	return loader.Write(row, "text", line...)
}

func write(t testing.TB, path, contents string) {
	require.NoError(t, os.WriteFile(path, []byte(contents), 0o600))
}

func open(t testing.TB, o lines.Options, paths ...string) (*lines.Dataset, error) {
	files, err := source.List(paths...)
	require.NoError(t, err)
	return lines.Open(t.Context(), files, text, encode, o)
}

// read is all lines of some files, and what was done about their indexes.
func read(t testing.TB, o lines.Options, paths ...string) ([]string, []lines.Index) {
	t.Helper()
	d, err := open(t, o, paths...)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	return all(t, d), d.Indexes()
}

func all(t testing.TB, d *lines.Dataset) (got []string) {
	t.Helper()
	if d.Len() == 0 {
		return nil
	}
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	for _, s := range samples {
		got = append(got, string(s["text"]))
	}
	return got
}

func TestLinesByNumber(t *testing.T) {
	for contents, want := range map[string][]string{
		"a\nbb\nccc\n":                     {"a", "bb", "ccc"},
		"a\r\nbb\r\n\r\n\n\nccc":           {"a", "bb", "ccc"},
		"\xef\xbb\xbfa\nbb\n":              {"a", "bb"},
		"a\rb\n\xef\xbb\xbfc\r":            {"a\rb", "\xef\xbb\xbfc"},
		"":                                 nil,
		"\n\n\n":                           nil,
		strings.Repeat("x", 100) + "\n\na": {strings.Repeat("x", 100), "a"},
	} {
		path := filepath.Join(t.TempDir(), "a.txt")
		write(t, path, contents)
		for _, o := range []lines.Options{{}, {Mapped: true}, {InMemory: true}, {Index: t.TempDir()}} {
			for range 2 {
				got, indexes := read(t, o, path)
				require.Equal(t, want, got, "%q", contents)
				require.Equal(t, len(want), indexes[0].Records)
				require.Empty(t, indexes[0].Why)
			}
		}
	}
}

func TestFilesOneBehindTheOther(t *testing.T) {
	files := fstest.MapFS{"a": {Data: []byte("1\n\n22\n")}, "b": {}, "c": {Data: []byte("333")}}
	all, err := source.GlobFS(files, "*")
	require.NoError(t, err)
	d, err := lines.Open(t.Context(), all, text, encode, lines.Options{})
	require.NoError(t, err)
	require.Equal(t, 3, d.Len())
	require.Equal(t, loader.Origin{File: "a", Offset: 3, Record: 1}, d.Origin(1))
	require.Equal(t, loader.Origin{File: "c", Offset: 0, Record: 0}, d.Origin(2))
	require.Equal(t, []lines.Index{{File: "a", Records: 2, Built: true}, {File: "b", Built: true}, {File: "c", Records: 1, Built: true}}, d.Indexes())
	sum := d.Fingerprint()
	require.NoError(t, d.Close())
	require.Equal(t, int64(-1), d.Origin(1).Offset)
	files["c"].Data = []byte("334")
	d, err = lines.Open(t.Context(), all, text, encode, lines.Options{})
	require.NoError(t, err)
	require.NotEqual(t, sum, d.Fingerprint())
	require.NoError(t, d.Close())
}

// An index is made once, kept beside its file or in a folder, and made again where anything
// has changed.
func TestAnIndexIsMadeOnce(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	path := filepath.Join(folder, "a.txt")
	write(t, path, "1\n22\n333\n")
	beside := filepath.Join(folder, ".a.txt.lines")
	step := func(o lines.Options, built bool, why string) string {
		t.Helper()
		got, indexes := read(t, o, path)
		contents, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, strings.Fields(string(contents)), got)
		require.Equal(t, built, indexes[0].Built)
		if why == "" {
			require.Empty(t, indexes[0].Why)
		}
		require.Contains(t, indexes[0].Why, why)
		return indexes[0].Path
	}
	require.Equal(t, beside, step(lines.Options{}, true, ""))
	step(lines.Options{}, false, "")
	step(lines.Options{Mapped: true}, false, "")
	kept := step(lines.Options{Index: other}, true, "")
	require.Equal(t, other, filepath.Dir(kept))
	step(lines.Options{Index: other}, false, "")
	require.Empty(t, step(lines.Options{InMemory: true}, true, ""))

	step(lines.Options{MaxLine: 50}, true, "it was made with MaxLine 16777216, this is 50")
	step(lines.Options{MaxLine: 50}, false, "")
	step(lines.Options{}, true, "MaxLine 50")
	write(t, path, "1\n22\n333\n4\n")
	step(lines.Options{}, true, "the file had 9 bytes, it has 11")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	step(lines.Options{}, true, "the file has changed since")
	step(lines.Options{}, false, "")

	whole, err := os.ReadFile(beside)
	require.NoError(t, err)
	for why, spoiled := range map[string][]byte{
		"is no index":        []byte("garbage that is longer than the end of an index"),
		"a negative offset":  whole[:10],
		"is damaged":         bytes.Replace(whole, []byte("records"), []byte("recordz"), 1),
		"entries for":        whole[16:],
		"unexpected end":     nil, // below
		"has 0 bytes of ent": whole[64:],
	} {
		if spoiled == nil {
			continue
		}
		require.NoError(t, os.WriteFile(beside, spoiled, 0o600))
		step(lines.Options{}, true, why)
		step(lines.Options{}, false, "")
	}
	missing := filepath.Join(folder, "missing")
	require.Empty(t, step(lines.Options{Index: missing}, true, "missing"))
	require.NoFileExists(t, missing)
}

// A file that was changed and has its old size and time again never gives half a line.
func TestALineThatTheIndexDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	const before = "{\"a\":1}\n{\"a\":22}\n"
	for name, after := range map[string]string{
		"swapped":    "{\"a\":22}\n{\"a\":1}\n",
		"joined":     "{\"a\":1}x{\"a\":22}\n",
		"longer":     "{\"a\":1}\n{\"a\":22}x",
		"one byte":   "{\"a\":2}\n{\"a\":23}\n",
		"other ends": "{\"a\":1\n}{\"a\":22}\n",
	} {
		for _, renamed := range []bool{false, true} {
			write(t, path, before)
			stat, err := os.Stat(path)
			require.NoError(t, err)
			got, _ := read(t, lines.Options{}, path)
			require.Equal(t, strings.Fields(before), got)
			if renamed {
				require.NoError(t, os.Rename(path, path+".old"))
			}
			write(t, path, after)
			require.NoError(t, os.Chtimes(path, stat.ModTime(), stat.ModTime()))
			d, err := open(t, lines.Options{}, path)
			require.NoError(t, err)
			if d.Indexes()[0].Built { // it has another number in the file system
				require.Equal(t, strings.Fields(after), all(t, d))
			} else {
				require.False(t, renamed)
				samples, err := drain.Samples(t.Context(), d)
				require.ErrorIs(t, err, source.ErrChanged, name)
				require.ErrorContains(t, err, ".a.jsonl.lines knows, got other bytes", name)
				for i, s := range samples {
					require.Equal(t, strings.Fields(before)[i], string(s["text"]), name)
				}
			}
			require.NoError(t, d.Close())
			_ = os.Remove(path + ".old")
		}
	}
}

// A line that is the same is not the line any more if what is around it has changed.
func TestBordersOfALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	const before = "1\n22\n333\n"
	for _, after := range []string{"1x22\n333\n", "1\n22x333\n", "1\n22\r333\n"} {
		write(t, path, before)
		stat, err := os.Stat(path)
		require.NoError(t, err)
		_, _ = read(t, lines.Options{}, path)
		write(t, path, after)
		require.NoError(t, os.Chtimes(path, stat.ModTime(), stat.ModTime()))
		d, err := open(t, lines.Options{}, path)
		require.NoError(t, err)
		ld, err := loader.New(d, 1, loader.Options{Epochs: 1})
		require.NoError(t, err)
		mem, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := ld.Start(t.Context(), loader.Cursor{Position: 1}, mem)
		_, err = run.Next(t.Context())
		require.ErrorIs(t, err, source.ErrChanged, after)
		require.NoError(t, run.Close())
		require.NoError(t, d.Close())
	}
}

// A file that is changed while it is read has no index that would be believed later.
func TestAFileThatChangesUnderItsIndex(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	write(t, path, "1\n")
	changed := false
	split := lines.Split{Kind: "changing", Scan: func(_ context.Context, _ source.File, _ int, record func(int64, []byte) error) error {
		if !changed {
			changed = true
			write(t, path, "1\n2\n")
		}
		return record(0, []byte("1"))
	}}
	got, indexes := read(t, lines.Options{Split: split}, path)
	require.Equal(t, []string{"1"}, got)
	require.Empty(t, indexes[0].Path)
	require.Contains(t, indexes[0].Why, "changed while it was read")
	require.NoFileExists(t, filepath.Join(folder, ".a.txt.lines"))
	_, indexes = read(t, lines.Options{Split: split}, path)
	require.NotEmpty(t, indexes[0].Path)
	_, indexes = read(t, lines.Options{}, path)
	require.Contains(t, indexes[0].Why, `it was made for "changing", this is "lines"`)
	failed := errors.New("no record")
	split.Scan = func(context.Context, source.File, int, func(int64, []byte) error) error { return failed }
	_, err := open(t, lines.Options{Split: split}, path)
	require.ErrorIs(t, err, failed)
}

// Files of one name have indexes of their own in a folder for all, which whoever may read the
// files may read.
func TestAFolderOfIndexes(t *testing.T) {
	folder, indexes := t.TempDir(), t.TempDir()
	var paths []string
	for _, name := range []string{"train", "test"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o700))
		path := filepath.Join(folder, name, "a.txt")
		write(t, path, name+"\n")
		require.NoError(t, os.Chmod(path, 0o640))
		paths = append(paths, path)
	}
	for _, built := range []bool{true, false} {
		got, made := read(t, lines.Options{Index: indexes}, paths...)
		require.Equal(t, []string{"train", "test"}, got)
		require.NotEqual(t, made[0].Path, made[1].Path)
		for _, x := range made {
			require.Equal(t, built, x.Built)
			stat, err := os.Stat(x.Path)
			require.NoError(t, err)
			if runtime.GOOS != "windows" {
				require.Equal(t, fs.FileMode(0o640), stat.Mode())
			}
		}
	}
}

// A file that is cut off under its reader is an error with the place.
func TestAFileThatShrinks(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "a.txt")
		write(t, path, strings.Repeat("0123456789\n", 1000))
		d, err := open(t, lines.Options{Mapped: mapped}, path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, 5500))
		samples, err := drain.Samples(t.Context(), d)
		require.ErrorIs(t, err, source.ErrChanged)
		require.LessOrEqual(t, len(samples), 500)
		require.NoError(t, d.Close())
		_, err = drain.Samples(t.Context(), d)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

// Whoever opens a file while others do, and while it is replaced, has the lines of one of its
// versions or an error, and nothing is left behind.
func TestManyAtOnce(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	versions := []string{"a\nbb\nccc\ndddd\n", "wwww\nxxx\nyy\nz\n"}
	write(t, path, versions[0])
	ctx, cancel := context.WithCancel(t.Context())
	var changes, readers sync.WaitGroup
	changes.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			next := filepath.Join(folder, "next")
			if os.WriteFile(next, []byte(versions[i%2]), 0o600) == nil {
				_ = os.Rename(next, path)
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	for range 4 {
		readers.Go(func() {
			for range 50 {
				d, err := open(t, lines.Options{}, path)
				if err != nil {
					t.Error(err)
					return
				}
				samples, err := drain.Samples(t.Context(), d)
				var got []string
				for _, s := range samples {
					got = append(got, string(s["text"]))
				}
				one := fmt.Sprint(got) == fmt.Sprint(strings.Fields(versions[0])) || fmt.Sprint(got) == fmt.Sprint(strings.Fields(versions[1]))
				if err == nil && !one || err != nil && !errors.Is(err, source.ErrChanged) {
					t.Error(got, err)
				}
				_ = d.Close()
			}
		})
	}
	readers.Wait()
	cancel()
	changes.Wait()
	left, err := filepath.Glob(filepath.Join(folder, "*.building"))
	require.NoError(t, err)
	require.Empty(t, left)
	hidden, err := filepath.Glob(filepath.Join(folder, ".*.building"))
	require.NoError(t, err)
	require.Empty(t, hidden)
}

// A process that is killed in the middle of an index leaves none, and is in nobody's way.
func TestAKilledBuild(t *testing.T) {
	if path := os.Getenv("LEAT_LINES_KILLED"); path != "" {
		_, _ = open(t, lines.Options{Split: lines.Split{Kind: "killed", Scan: func(_ context.Context, _ source.File, _ int, record func(int64, []byte) error) error {
			for i := range int64(100000) {
				_ = record(i, []byte("x")) // more than any buffer holds
			}
			self, err := os.FindProcess(os.Getpid())
			require.NoError(t, err)
			require.NoError(t, self.Kill())
			select {}
		}}}, path)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	write(t, path, "1\n22\n")
	killed := exec.Command(os.Args[0], "-test.run=^TestAKilledBuild$")
	killed.Env = append(os.Environ(), "LEAT_LINES_KILLED="+path)
	require.Error(t, killed.Run())
	left, err := filepath.Glob(filepath.Join(folder, ".a.txt.lines.*.building"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	got, indexes := read(t, lines.Options{}, path)
	require.Equal(t, []string{"1", "22"}, got)
	require.True(t, indexes[0].Built)
	require.Empty(t, indexes[0].Why)
	_, indexes = read(t, lines.Options{}, path)
	require.False(t, indexes[0].Built)
}

func TestWhatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	write(t, path, "1\n4444\n1")
	_, err := open(t, lines.Options{MaxLine: 3}, path)
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.Equal(t, int64(2), format.Offset)
	require.ErrorContains(t, err, "want a line of at most the 3 bytes of MaxLine, got more")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
	write(t, path, "\x1f\x8b\x08 and so on")
	_, err = open(t, lines.Options{}, path)
	require.ErrorContains(t, err, "want text, got a gzip file")
	_, err = open(t, lines.Options{}, path+".missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = lines.Open(t.Context(), nil, nil, nil, lines.Options{MaxLine: -1, Index: "a", InMemory: true, Split: lines.Split{Kind: "x"}})
	for _, want := range []string{"lines: files is empty", "lines: MaxLine is -1", "Split is a Kind or a Scan alone", "InMemory", "lines: encode is nil", "Fields is empty"} {
		require.ErrorContains(t, err, want)
	}
	write(t, path, "1\n22\n")
	at := errors.New("at 22")
	files, err := source.List(path)
	require.NoError(t, err)
	d, err := lines.Open(t.Context(), files, text, func(_ context.Context, line []byte, row *loader.Row) error {
		if len(line) == 2 {
			return &source.FormatError{Format: "mine", Offset: 1, Field: "text", Want: "1", Got: "2", Err: at}
		}
		return loader.Write(row, "text", line...)
	}, lines.Options{})
	require.NoError(t, err)
	_, err = drain.Samples(t.Context(), d)
	require.ErrorIs(t, err, at)
	require.ErrorContains(t, err, path+": at byte 3: record 1: text: want 1, got 2")
	require.NoError(t, d.Close())
}

func TestEveryFailureOfARead(t *testing.T) {
	drain.EveryFailure(t, in([]byte("1\n22"), []byte("3")), func(files []source.Source) (io.Closer, error) {
		return lines.Open(t.Context(), files, text, encode, lines.Options{})
	})
}

func FuzzIndex(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.txt")
	write(f, path, "1\n22\n333\n")
	d, err := open(f, lines.Options{}, path)
	require.NoError(f, err)
	require.NoError(f, d.Close())
	index := filepath.Join(filepath.Dir(path), ".a.txt.lines")
	b, err := os.ReadFile(index)
	require.NoError(f, err)
	f.Add(b)
	f.Add(b[16:])
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(index, b, 0o600))
		d, err := open(t, lines.Options{}, path)
		require.NoError(t, err)
		if d.Len() > 0 && d.Len() < 100 {
			samples, err := drain.Samples(t.Context(), d)
			if err != nil {
				require.ErrorIs(t, err, source.ErrChanged)
			}
			for i, s := range samples {
				require.Contains(t, []string{"1", "22", "333"}, string(s["text"]), i)
			}
		}
		require.NoError(t, d.Close())
	})
}
