package images_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
	"github.com/leat-go/leat/loader/source"
)

// files is a folder of files that are all the same picture.
func files(t testing.TB, names ...string) fstest.MapFS {
	picture := fixture(t, "pets/cat/2.png")
	folder := fstest.MapFS{}
	for _, name := range names {
		folder[name] = &fstest.MapFile{Data: picture}
	}
	return folder
}

// onDisk writes it out.
func onDisk(t testing.TB, folder fstest.MapFS) string {
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, folder))
	return root
}

// Labels are numbers of names sorted by bytes, and every file is a sample or told in Plan.
func TestFolder(t *testing.T) {
	folder := files(t,
		"Zebra/a.JPG", "Zebra/b/c.png", "ant/2.webp", "ant/10.gif", "ärger/1.jpeg",
		".git/x.png", "ant/.hidden.png", "ant/notes.txt", "ant/x.tiff", "README.md", "stray.png",
	)
	want := []string{"Zebra/a.JPG", "Zebra/b/c.png", "ant/10.gif", "ant/2.webp", "ärger/1.jpeg"}
	root := onDisk(t, folder)
	fromDisk, err := images.Open(t.Context(), root, images.Options{})
	require.NoError(t, err)
	fromFS, err := images.OpenFS(t.Context(), folder, images.Options{})
	require.NoError(t, err)
	for place, d := range map[string]*images.Dataset{root: fromDisk, "": fromFS} {
		require.Equal(t, []string{"Zebra", "ant", "ärger"}, d.Classes())
		require.Equal(t, len(want), d.Len())
		for i, name := range want {
			require.Equal(t, filepath.Join(place, name), d.Origin(i).File)
			require.Equal(t, []int{0, 0, 1, 1, 2}[i], d.Label(i))
		}
		plan := d.Plan()
		require.Equal(t, []string{"README.md", "stray.png", "ant/notes.txt", "ant/x.tiff"}, plan.Stray)
		require.Equal(t, 4, plan.Strays)
		require.Equal(t, []images.Class{{"Zebra", 2}, {"ant", 2}, {"ärger", 1}}, plan.Classes)
		require.Contains(t, plan.String(), "5 pictures of 3 classes, decoded by Go's standard decoders\n  0 Zebra: 2\n")
		require.Contains(t, plan.String(), "files left out: 4\n  README.md\n")
	}
	require.Equal(t, fromDisk.Fingerprint(), fromFS.Fingerprint())
}

// The fingerprint is that of the same pictures elsewhere, and no other's.
func TestFingerprint(t *testing.T) {
	open := func(folder fs.FS, o images.Options) uint64 {
		d, err := images.OpenFS(t.Context(), folder, o)
		require.NoError(t, err)
		return d.Fingerprint()
	}
	one := files(t, "a/1.png", "b/1.png")
	seen := map[uint64]int{}
	for i, sum := range []uint64{
		open(one, images.Options{}), open(files(t, "a/1.png", "b/2.png"), images.Options{}),
		open(files(t, "a/1.png", "a/2.png"), images.Options{}), open(one, images.Options{Height: 10}),
		open(one, images.Options{Gray: true}), open(one, images.Options{Upright: true}), open(one, images.Options{Flip: 0.5}),
		open(one, images.Options{Classes: []string{"b", "a"}}), open(one, images.Options{Classes: []string{"a", "b", "c"}}),
	} {
		require.NotContains(t, seen, sum, "%d and %d", i, seen[sum])
		seen[sum] = i
	}
	require.Equal(t, open(one, images.Options{}), open(files(t, "a/1.png", "b/1.png", "c.txt"), images.Options{Height: 224}))
}

func TestFoldersThatAreNone(t *testing.T) {
	missing := new(images.MissingError)
	_, err := images.OpenFS(t.Context(), files(t, "1.png", "2.png"), images.Options{})
	require.ErrorAs(t, err, &missing)
	require.EqualError(t, err, "images: . has no folders in it, want one for each class; 2 other files, the first is 1.png")
	_, err = images.OpenFS(t.Context(), files(t, "a/1.png", "b/1.txt", "c/1.doc"), images.Options{})
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"b", "c"}, missing.Empty)
	require.EqualError(t, err, "images: .: no picture of 2 classes, the first is b; 2 other files, the first is b/1.txt")
	_, err = images.OpenFS(t.Context(), files(t, "a/1.png", "b/1.png"), images.Options{Classes: []string{"a", "c"}})
	require.ErrorAs(t, err, new(*loader.OptionError))
	require.ErrorContains(t, err, "one for each folder, b too")
	missingFolder := filepath.ToSlash(filepath.Join(t.TempDir(), "missing"))
	_, err = images.Open(t.Context(), missingFolder, images.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	var unread *source.Error
	require.ErrorAs(t, err, &unread)
	require.Equal(t, missingFolder, unread.Source, "the message has the folder, and not its root as . alone")
	_, err = images.Open(t.Context(), "testdata/pets", images.Options{Height: -1, Width: -1})
	require.ErrorContains(t, err, "Height")
	require.ErrorContains(t, err, "Width")
}

// A part of a data set has the labels of the whole if the classes are stated.
func TestStatedClasses(t *testing.T) {
	d, err := images.OpenFS(t.Context(), files(t, "cat/1.png", "eel/1.png"), images.Options{Classes: []string{"eel", "dog", "cat"}})
	require.NoError(t, err)
	require.Equal(t, []string{"eel", "dog", "cat"}, d.Classes())
	require.Equal(t, "eel/1.png", d.Origin(0).File)
	require.Equal(t, 0, d.Label(0))
	require.Equal(t, 2, d.Label(1))
}

// Links are followed, to files and to folders, and one in a circle ends.
func TestLinks(t *testing.T) {
	root := onDisk(t, files(t, "a/1.png", "elsewhere/2.png"))
	for link, to := range map[string]string{"a/file.png": "1.png", "a/folder": "../elsewhere", "b": "elsewhere", "a/circle": "../a", "a/dead.png": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip("this system makes no links:", err)
		}
	}
	_, err := images.Open(t.Context(), root, images.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist, "a link that leads nowhere")
	require.NoError(t, os.Remove(filepath.Join(root, "a/dead.png")))
	d, err := images.Open(t.Context(), root, images.Options{})
	require.NoError(t, err)
	var names []string
	for i := range d.Len() {
		name, err := filepath.Rel(root, d.Origin(i).File)
		require.NoError(t, err)
		names = append(names, filepath.ToSlash(name))
	}
	require.Equal(t, []string{"a/1.png", "a/file.png", "a/folder/2.png", "b/2.png", "elsewhere/2.png"}, names)
}

// Batches hold every picture with its label, the same for any number of workers, and what is
// broken is an error with its file, or substituted and told.
func TestBatches(t *testing.T) {
	o := images.Options{Height: 6, Width: 8, Crop: images.Random(0.08, 4.0/3), Flip: 0.5}
	d, err := images.Open(t.Context(), "testdata/pets", o)
	require.NoError(t, err)
	require.Equal(t, []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{6, 8, 3}}, {Name: "label", DType: dtype.Int32}}, d.Fields())
	var first []loader.Digest
	for _, workers := range []int{1, 4} {
		digests, colours := run(t, d, loader.Options{Shuffle: true, Seed: 3, Epochs: 3, Workers: workers})
		require.Len(t, digests, 6)
		for colour, label := range colours {
			require.Equal(t, colour, label)
		}
		if first == nil {
			first = digests
		}
		require.Equal(t, first, digests)
	}

	broken := files(t, "a/1.png", "a/2.png", "b/3.png")
	broken["a/2.png"] = &fstest.MapFile{Data: broken["a/2.png"].Data[:40]}
	d, err = images.OpenFS(t.Context(), broken, images.Options{Height: 2, Width: 2})
	require.NoError(t, err)
	_, _, err = tryRun(t, d, loader.Options{Epochs: 1})
	var format *source.FormatError
	require.ErrorAs(t, err, &format)
	require.Equal(t, "a/2.png", format.File)
	var failed *loader.Error
	require.ErrorAs(t, err, &failed)
	digests, _ := run(t, d, loader.Options{Epochs: 1, OnError: loader.Substitute, Shuffle: true})
	require.Len(t, digests, 2)

	d, err = images.OpenFS(t.Context(), broken, images.Options{MaxBytes: 41})
	require.NoError(t, err)
	_, _, err = tryRun(t, d, loader.Options{Epochs: 1})
	require.ErrorContains(t, err, "want a file of at most 41 bytes, got ")
}

func run(t *testing.T, d loader.Dataset, o loader.Options) ([]loader.Digest, map[int32]int32) {
	t.Helper()
	digests, colours, err := tryRun(t, d, o)
	require.NoError(t, err)
	return digests, colours
}

// tryRun reads all batches. colours has the label of each picture by which colour it has: 0 where
// it is red, 1 where it is blue.
func tryRun(t *testing.T, d loader.Dataset, o loader.Options) (digests []loader.Digest, colours map[int32]int32, err error) {
	t.Helper()
	o.Last = loader.Exact
	ld, err := loader.New(d, 2, o)
	require.NoError(t, err)
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	run := ld.Start(t.Context(), loader.Cursor{}, mem)
	defer func() { require.NoError(t, run.Close()) }()
	colours = map[int32]int32{}
	for {
		b, err := run.Next(t.Context())
		if errors.Is(err, loader.ErrEpochEnd) {
			continue
		}
		if errors.Is(err, loader.ErrEnd) {
			return digests, colours, nil
		}
		if err != nil {
			return digests, colours, err
		}
		digests = append(digests, ld.Layout().Digest(b))
		pixels, labels := ld.Layout().Rows(0, b), dtype.As[int32](ld.Layout().Rows(1, b))
		for i, label := range labels {
			colour := int32(0)
			if p := pixels[i*len(pixels)/len(labels):]; p[2] > p[0] {
				colour = 1
			}
			colours[colour] = label
		}
		mem.Put(b.Slot)
	}
}
