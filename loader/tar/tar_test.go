package tar_test

import (
	gotar "archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
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
	"github.com/leat-go/leat/loader/tar"
)

// one is a file in memory.
func one(data []byte) []source.Source {
	return []source.Source{source.FS(fstest.MapFS{"a.tar": {Data: data}}, "a.tar")}
}

// byNumber reads all samples by number, in a random order.
func byNumber(t testing.TB, files []source.Source, o tar.Options) ([]*tar.Sample, error) {
	t.Helper()
	s, err := tar.Open(t.Context(), files, o)
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, s.Close()) }()
	all := make([]*tar.Sample, s.Len())
	for _, i := range rand.Perm(s.Len()) {
		if all[i], err = s.Read(t.Context(), i); err != nil {
			return nil, err
		}
		require.Equal(t, s.Origin(i), all[i].Origin)
	}
	return all, nil
}

// inOrder reads all samples of a stream's only shard, with the errors between.
func inOrder(t testing.TB, files []source.Source, o tar.Options) (all []*tar.Sample, err error) {
	t.Helper()
	var errs []error
	for item, err := range tar.NewStream(files, o).Items(t.Context(), loader.Pass{}, 0) {
		if err != nil {
			errs = append(errs, err)
			if len(errs) > 1 && errs[len(errs)-2].Error() == err.Error() {
				break // for ever
			}
			continue
		}
		require.Equal(t, item.Origin, item.Value.Origin)
		all = append(all, item.Value)
	}
	return all, errors.Join(errs...)
}

func file(name string) []source.Source {
	return []source.Source{source.Path(filepath.Join("testdata", name))}
}

// What each program has written is five samples, by number and in order.
func TestWhatOthersWrite(t *testing.T) {
	for _, name := range []string{
		"webdataset.tar", "webdataset.tar.gz", "webdataset.tar.zst", "tarfile-ustar.tar", "tarfile-gnu.tar", "tarfile-pax.tar",
		"gnutar-gnu.tar", "gnutar-pax.tar", "bsdtar-gnu.tar", "bsdtar-pax.tar",
	} {
		t.Run(name, func(t *testing.T) {
			all, err := inOrder(t, file(name), tar.Options{})
			require.NoError(t, err)
			if strings.HasSuffix(name, ".tar") {
				numbered, err := byNumber(t, file(name), tar.Options{})
				require.NoError(t, err)
				require.Equal(t, all, numbered)
				numbered, err = byNumber(t, file(name), tar.Options{Mapped: true})
				require.NoError(t, err)
				require.Equal(t, all, numbered)
			}
			require.Len(t, all, 5)
			for i, s := range all {
				require.True(t, strings.HasSuffix(s.Key, fmt.Sprintf("%04d", i)), s.Key)
				require.NotContains(t, s.Key, "./")
				require.Len(t, s.Parts, 3)
				require.EqualValues(t, i, s.Origin.Record)
				class, err := s.Int("cls")
				require.NoError(t, err)
				require.EqualValues(t, i, class)
				text, err := s.Get("jpg", "txt")
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("text %d", i), string(text))
				data, err := s.Get("bin")
				require.NoError(t, err)
				require.Equal(t, bytes.Repeat([]byte{byte(i)}, 300*i), append([]byte{}, data...))
			}
		})
	}
}

// What has its data elsewhere is refused, and so is a compressed file by number.
func TestWhatIsRefused(t *testing.T) {
	for name, want := range map[string]string{
		"hardlink.tar":       "want the file ./0000.txt, got a hard link",
		"sparse-gnu.tar":     "want the whole file 0.bin, got a sparse one",
		"sparse-pax.tar":     "want an extended header, got a sparse file",
		"webdataset.tar.gz":  "by NewStream, got a file compressed by gzip",
		"webdataset.tar.zst": "by NewStream, got a file compressed by zstd",
	} {
		_, err := byNumber(t, file(name), tar.Options{})
		var format *source.FormatError
		require.ErrorAs(t, err, &format, name)
		require.Equal(t, filepath.Join("testdata", name), format.File)
		require.ErrorContains(t, err, want)
	}
	_, err := tar.Open(t.Context(), nil, tar.Options{})
	require.ErrorAs(t, err, new(*loader.OptionError))
	_, err = tar.Open(t.Context(), file("webdataset.tar"), tar.Options{MaxBytes: -1})
	require.ErrorAs(t, err, new(*loader.OptionError))
	require.ErrorAs(t, tar.NewStream(nil, tar.Options{}).Err(), new(*loader.OptionError))
	require.ErrorAs(t, tar.NewStream(file("webdataset.tar"), tar.Options{Shards: 2}).Err(), new(*loader.OptionError))
	require.ErrorAs(t, tar.NewStream(file("webdataset.tar"), tar.Options{MaxBytes: -1}).Err(), new(*loader.OptionError))
	_, err = tar.Open(t.Context(), file("missing.tar"), tar.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// member is a file of a tar.
type member struct{ name, data string }

// packed is a tar file of members.
func packed(t testing.TB, members ...member) []byte {
	var b bytes.Buffer
	w := gotar.NewWriter(&b)
	for _, m := range members {
		require.NoError(t, w.WriteHeader(&gotar.Header{Name: m.name, Size: int64(len(m.data)), Mode: 0o600, Typeflag: gotar.TypeReg}))
		_, err := io.WriteString(w, m.data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// describe is keys with their suffixes.
func describe(all []*tar.Sample) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s:", s.Key)
		for _, p := range s.Parts {
			fmt.Fprintf(&b, "%s=%s,", p.Suffix, p.Data)
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// both reads by number and in order, which is the same.
func both(t testing.TB, data []byte, o tar.Options) (string, error) {
	t.Helper()
	numbered, errNumbered := byNumber(t, one(data), o)
	ordered, err := inOrder(t, one(data), o)
	require.Equal(t, err == nil, errNumbered == nil, "%v, %v", err, errNumbered)
	if err == nil {
		require.Equal(t, describe(ordered), describe(numbered))
		return describe(ordered), nil
	}
	return describe(ordered), errNumbered
}

// What belongs to a sample is what WebDataset's rule says.
func TestKeys(t *testing.T) {
	got, err := both(t, packed(t,
		member{"./v1.5/001.jpg", "a"}, member{"v1.5/001.Seg.PNG", "b"}, // one sample
		member{"__meta__", "x"}, member{"v1.5/.hidden.jpg", "x"}, member{"v1.5/._001.cls", "x"}, member{"v1.5/README", "x"},
		member{"PaxHeaders.12/001.cls", "x"}, member{"v1.5/PaxHeaders.12/001.cls", "x"},
		member{"v1.5/001.cls", "c"},
		member{"001.jpg", "d"}, member{"v1.5/001.jpg", "e"}, // not next to each other: two
	), tar.Options{})
	require.NoError(t, err)
	require.Equal(t, "v1.5/001:jpg=a,seg.png=b,cls=c, 001:jpg=d, v1.5/001:jpg=e,", got)

	music := packed(t, member{"a/235342 Track 2.0 (x).mp3", "a"}, member{"a/235342 Track 2.0 (x).json", "b"}, member{"v1.5/001.jpg", "c"})
	_, err = both(t, music, tar.Options{})
	require.NoError(t, err)
	got, err = both(t, music, tar.Options{Key: tar.LastPoint})
	require.NoError(t, err)
	require.Equal(t, "a/235342 Track 2.0 (x):mp3=a,json=b, v1.5/001:jpg=c,", got)
	all, err := byNumber(t, one(music), tar.Options{})
	require.NoError(t, err)
	_, err = all[0].Get("mp3")
	require.EqualError(t, err, "tar: a.tar: at byte 0: record 0: want a part mp3, got key a/235342 Track 2 with 0 (x).mp3, 0 (x).json")
}

// Parts that are there twice, or are too large, cost their sample only, in order.
func TestSamplesThatAreBroken(t *testing.T) {
	data := packed(t, member{"0.txt", "a"}, member{"1.txt", "b"}, member{"1.TXT", "c"}, member{"1.cls", "7"}, member{"2.txt", strings.Repeat("d", 3000)}, member{"3.txt", "e"})
	got, err := both(t, data, tar.Options{MaxBytes: 2500})
	require.Equal(t, "0:txt=a, 3:txt=e,", got)
	require.EqualError(t, err, "tar: a.tar: at byte 2048: record 1: txt: want each part of a sample once, got another 1.TXT")
	_, err = inOrder(t, one(data), tar.Options{MaxBytes: 2500})
	require.ErrorContains(t, err, "record 2: txt: want a sample of at most 2500 bytes (Options.MaxBytes), got 3512")
}

func TestParts(t *testing.T) {
	all, err := byNumber(t, one(packed(t, member{"0.cls", " 12\n"}, member{"0.txt", "1x"}, member{"0.pyd", "p"}, member{"0.model.pth", "q"})), tar.Options{})
	require.NoError(t, err)
	n, err := all[0].Int("cls")
	require.NoError(t, err)
	require.EqualValues(t, 12, n)
	for suffix, want := range map[string]string{
		"txt": `txt: want a whole number, got "1x"`, "cls2": "want a part cls2, got key 0 with cls, txt, pyd, model.pth",
		"pyd": "pyd: want a format that holds data alone, got a pickle", "model.pth": "got a pickle",
	} {
		_, err := all[0].Int(suffix)
		require.ErrorAs(t, err, new(*source.FormatError))
		require.ErrorContains(t, err, want)
	}
}

// records are a pax header's.
func records(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		body := " " + pairs[i] + "=" + pairs[i+1] + "\n"
		n := len(body)
		for n != len(fmt.Sprint(n))+len(body) {
			n = len(fmt.Sprint(n)) + len(body)
		}
		fmt.Fprintf(&b, "%d%s", n, body)
	}
	return b.String()
}

// raw is a header and data, with that size in the header.
func raw(kind byte, name, size, data string) []byte {
	b := make([]byte, 512, 1024+len(data))
	copy(b, name)
	copy(b[100:], "0000644\x00")
	copy(b[124:], size)
	copy(b[148:], "        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	b = append(b, data...)
	return append(b, make([]byte, (512-len(data)%512)%512)...)
}

var zeros = make([]byte, 1024)

// A pax record of the size counts more than the header's, which is 0 where it doesn't fit.
func TestSizesOfPax(t *testing.T) {
	data := bytes.Join([][]byte{
		raw('x', "x", "00000000015\x00", records("size", "1024")), raw('0', "1.bin", "00000000000\x00", strings.Repeat("y", 1024)),
		raw('0', "1.cls", "00000000001\x00", "4"), zeros,
	}, nil)
	got, err := both(t, data, tar.Options{})
	require.NoError(t, err)
	require.Equal(t, "1:bin="+strings.Repeat("y", 1024)+",cls=4,", got)

	binarySize := make([]byte, 12)
	binarySize[0] = 0x80
	binary.BigEndian.PutUint64(binarySize[4:], 3)
	got, err = both(t, bytes.Join([][]byte{raw('0', "1.bin", string(binarySize), "abc"), zeros}, nil), tar.Options{})
	require.NoError(t, err)
	require.Equal(t, "1:bin=abc,", got)
}

// Files that were put together are read to the end of the last, with any zeros between.
func TestConcatenated(t *testing.T) {
	data := bytes.Join([][]byte{packed(t, member{"0.txt", "a"}), packed(t, member{"1.txt", "b"}), zeros, packed(t, member{"2.txt", "c"}), make([]byte, 100)}, nil)
	got, err := both(t, data, tar.Options{})
	require.NoError(t, err)
	require.Equal(t, "0:txt=a, 1:txt=b, 2:txt=c,", got)

	zip := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	parts := append(zip(data[:1536]), zip(data[1536:])...)
	all, err := inOrder(t, one(append(bytes.Clone(parts), make([]byte, 512)...)), tar.Options{})
	require.NoError(t, err)
	require.Equal(t, got, describe(all))
	all, err = inOrder(t, one(append(bytes.Clone(parts), "garbage"...)), tar.Options{})
	require.Equal(t, got, describe(all))
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.EqualValues(t, len(parts), format.Offset)
}

// Headers that were made up are errors with their place, whatever they claim.
func TestDamage(t *testing.T) {
	good := raw('0', "0.txt", "00000000001\x00", "a")
	huge := "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff"
	for name, c := range map[string]struct {
		bad  []byte
		want string
	}{
		"no end":                   {nil, "want blocks of zeros at the end, got the end of the file"},
		"checksum":                 {bytes.Replace(raw('0', "1.txt", "00000000001\x00", "b"), []byte("1.txt"), []byte("2.txt"), 1), "want a header with its checksum"},
		"text":                     {bytes.Repeat([]byte("x"), 512), "want a header with its checksum"},
		"size of letters":          {raw('0', "1.txt", "hello\x00", "b"), `want a size, got "hello"`},
		"largest size":             {raw('0', "1.txt", huge, "b"), "want a size"},
		"negative size":            {raw('0', "1.txt", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "b"), "want a size"},
		"8 TiB":                    {raw('0', "1.txt", "\x80\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00", "b"), "1.txt, got "},
		"pax of 8 TiB":             {raw('x', "1.txt", "\x80\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00", "b"), "want an extended header of at most"},
		"label of 8 EiB":           {raw('g', "1.txt", huge, "b"), ""},
		"pax size":                 {append(raw('x', "x", "00000000015\x00", records("size", "-124")), raw('0', "1.txt", "00000000001\x00", "b")...), `want an extended header, got size "-124"`},
		"pax record without end":   {raw('x', "x", "00000000015\x00", "99 size=1024\n"), "want an extended header"},
		"pax record of no length":  {raw('x', "x", "00000000015\x00", "0 size=10245\n"), "want an extended header"},
		"pax record of one letter": {raw('x', "x", "00000000015\x00", "1size=102456\n"), "want an extended header"},
		"pax at the end":           {append(raw('x', "x", "00000000015\x00", records("size", "1024")), zeros...), "want a header behind an extended one"},
		"type":                     {raw('M', "1.txt", "00000000001\x00", "b"), "want a type of file, got 'M'"},
		"cut in the data":          {raw('0', "1.txt", "00000001000\x00", "b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := both(t, append(bytes.Clone(good), c.bad...), tar.Options{})
			var format *source.FormatError
			require.ErrorAs(t, err, &format)
			require.Equal(t, "a.tar", format.File)
			require.ErrorContains(t, err, c.want)
			require.GreaterOrEqual(t, format.Offset, int64(512))
			require.Contains(t, []string{"0:txt=a,", ""}, got)
		})
	}
}

// A file of whatever length that is no whole one is an error, and its whole samples are those
// of the whole file.
func TestFilesThatAreCutOff(t *testing.T) {
	whole, err := os.ReadFile("testdata/webdataset.tar")
	require.NoError(t, err)
	all, err := inOrder(t, one(whole), tar.Options{})
	require.NoError(t, err)
	last := all[4].Origin.Offset + 3*1024 + 1024 // behind its data
	for n := 0; int64(n) < last; n += 97 {
		_, err := byNumber(t, one(whole[:n]), tar.Options{})
		require.ErrorAs(t, err, new(*source.FormatError), n)
		some, err := inOrder(t, one(whole[:n]), tar.Options{})
		require.ErrorAs(t, err, new(*source.FormatError), n)
		require.Equal(t, describe(all[:len(some)]), describe(some))
	}
}

// A file that becomes shorter costs the samples that are gone.
func TestAFileThatIsTruncated(t *testing.T) {
	data, err := os.ReadFile("testdata/webdataset.tar")
	require.NoError(t, err)
	for _, mapped := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "a.tar")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		s, err := tar.Open(t.Context(), []source.Source{source.Path(path)}, tar.Options{Mapped: mapped})
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, 4096))
		_, err = s.Read(t.Context(), 0)
		require.NoError(t, err)
		_, err = s.Read(t.Context(), 4)
		require.ErrorIs(t, err, source.ErrChanged)
		require.NoError(t, s.Close())
		_, err = s.Read(t.Context(), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

// From each place a stream goes on with exactly what is left, also over several files.
func TestMarks(t *testing.T) {
	var files []source.Source
	for _, name := range []string{"webdataset.tar", "webdataset.tar.gz", "gnutar-pax.tar", "webdataset.tar.zst", "tarfile-gnu.tar"} {
		files = append(files, file(name)...)
	}
	for _, shuffle := range []bool{false, true} {
		s := tar.NewStream(files, tar.Options{Shards: 2, Shuffle: shuffle})
		require.NoError(t, s.Err())
		orders := map[string]bool{}
		for epoch := range 6 {
			pass := loader.Pass{Epoch: epoch, Seed: 5}
			var all []string
			var marks [][]byte
			r, err := s.Open(t.Context(), pass, 0, nil)
			require.NoError(t, err)
			for {
				mark, err := r.AppendMark(nil)
				require.NoError(t, err)
				marks = append(marks, mark)
				var item stream.Item[*tar.Sample]
				ok, err := r.Next(t.Context(), &item)
				require.NoError(t, err)
				if !ok {
					break
				}
				all = append(all, fmt.Sprint(item.Origin, item.Value.Key))
			}
			require.NoError(t, r.Close())
			require.Len(t, all, 15)
			orders[fmt.Sprint(all)] = true
			for i, mark := range marks {
				r, err := s.Open(t.Context(), pass, 0, mark)
				require.NoError(t, err)
				for _, want := range append(all[i:len(all):len(all)], "") {
					var item stream.Item[*tar.Sample]
					ok, err := r.Next(t.Context(), &item)
					require.NoError(t, err)
					require.Equal(t, want != "", ok)
					if ok {
						require.Equal(t, want, fmt.Sprint(item.Origin, item.Value.Key))
					}
				}
				require.NoError(t, r.Close())
			}
		}
		require.Equal(t, shuffle, len(orders) > 1)
		for _, mark := range []string{`{"file":-1}`, `{"file":9}`, `{"file":0,"offset":-1}`, `{"other":1}`, `{"file":0} 1`, `7`} {
			_, err := s.Open(t.Context(), loader.Pass{}, 0, []byte(mark))
			require.ErrorAs(t, err, new(*stream.MarkError), mark)
		}
		r, err := s.Open(t.Context(), loader.Pass{}, 1, []byte(`{"file":0,"offset":99999999}`))
		require.NoError(t, err)
		var item stream.Item[*tar.Sample]
		_, err = r.Next(t.Context(), &item)
		require.ErrorAs(t, err, new(*source.FormatError))
		require.NoError(t, r.Close())
	}
}

// A call that was cancelled loses nothing.
func TestACallThatIsCancelled(t *testing.T) {
	for _, name := range []string{"webdataset.tar", "webdataset.tar.gz", "webdataset.tar.zst"} {
		r, err := tar.NewStream(file(name), tar.Options{}).Open(t.Context(), loader.Pass{}, 0, nil)
		require.NoError(t, err)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 5 {
			var item stream.Item[*tar.Sample]
			if _, err := r.Next(cancelled, &item); err != nil {
				require.ErrorIs(t, err, context.Canceled)
				ok, err := r.Next(t.Context(), &item)
				require.NoError(t, err)
				require.True(t, ok)
			}
			require.Equal(t, fmt.Sprintf("%04d", i), item.Value.Key)
		}
		require.NoError(t, r.Close())
	}
}

var fields = []loader.Field{{Name: "class", DType: dtype.Int64}, {Name: "text", DType: dtype.Uint8, Shape: []int{6}}}

func encode(_ context.Context, s *tar.Sample, row *loader.Row) error {
	class, err := s.Int("cls")
	if err != nil {
		return err
	}
	text, err := s.Get("txt")
	return errors.Join(err, loader.Write(row, "class", class), loader.Write(row, "text", text...))
}

// Batches hold each sample once, and a broken one is told with its file and offset.
func TestBatches(t *testing.T) {
	s, err := tar.Open(t.Context(), append(file("webdataset.tar"), file("tarfile-gnu.tar")...), tar.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, []string{"bin", "cls", "txt"}, s.Suffixes())
	require.Equal(t, "testdata/tarfile-gnu.tar", filepath.ToSlash(s.Origin(7).File))
	ds := s.Dataset(fields, encode)
	require.Equal(t, s.Fingerprint(), ds.(loader.Fingerprinter).Fingerprint())
	ld, err := loader.New(ds, 5, loader.Options{Shuffle: true, Epochs: 1, Workers: 3})
	require.NoError(t, err)
	seen := map[int64]int{}
	drain(t, ld, func(class int64) { seen[class]++ })
	require.Equal(t, map[int64]int{0: 2, 1: 2, 2: 2, 3: 2, 4: 2}, seen)

	st := tar.NewStream(file("webdataset.tar.zst"), tar.Options{})
	ld, err = loader.NewStream(stream.Encode(st, fields, encode), 5, loader.Options{Epochs: 1})
	require.NoError(t, err)
	seen = map[int64]int{}
	drain(t, ld, func(class int64) { seen[class]++ })
	require.Len(t, seen, 5)
}

func drain(t *testing.T, ld *loader.Loader, each func(class int64)) {
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	defer func() { require.NoError(t, run.Close()) }()
	for {
		b, err := run.Next(t.Context())
		if errors.Is(err, loader.ErrEpochEnd) {
			return
		}
		require.NoError(t, err)
		for _, class := range dtype.As[int64](ld.Layout().Rows(0, b)) {
			each(class)
		}
		mem.Put(b.Slot)
	}
}

// Whatever a file holds, both ways agree, and neither panics or takes more memory than there is
// data for.
func FuzzTar(f *testing.F) {
	names, err := filepath.Glob("testdata/*.tar*")
	require.NoError(f, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data[:min(len(data), 8<<10)])
	}
	f.Add(raw('x', "x", "00000000015\x00", records("size", "1024")))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := tar.Options{MaxBytes: 1 << 20}
		numbered, err := byNumber(t, one(data), o)
		if err != nil {
			require.ErrorAs(t, err, new(*source.FormatError))
		}
		ordered, orderedErr := inOrder(t, one(data), o)
		if err == nil {
			require.NoError(t, orderedErr)
			require.Equal(t, describe(ordered), describe(numbered))
		}
	})
}
