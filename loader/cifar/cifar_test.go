package cifar_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/cifar"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/source"
)

// file has so many pictures, each with these labels; a pixel is the picture's number and the
// plane's.
func file(pictures int, labels ...byte) (b []byte) {
	for n := range pictures {
		b = append(b, labels...)
		for i := range 3 * 32 * 32 {
			b = append(b, byte(10*n+i/1024))
		}
	}
	return b
}

// in are sources of files.
func in(files ...[]byte) (all []source.Source) {
	contents := fstest.MapFS{}
	for i, b := range files {
		name := fmt.Sprintf("data_batch_%d.bin", i+1)
		contents[name] = &fstest.MapFile{Data: b}
		all = append(all, source.FS(contents, name))
	}
	return all
}

func TestBoth(t *testing.T) {
	d, err := cifar.Open(t.Context(), in(file(2, 9), file(1, 3)), cifar.Options{})
	require.NoError(t, err)
	require.Equal(t, "[label uint8 image uint8[3 32 32]]", fmt.Sprint(d.Fields()))
	samples, err := drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []byte{9, 9, 3}, drain.Field[uint8](samples, "label"))
	require.Equal(t, []byte{10, 11, 12}, []byte{samples[1]["image"][0], samples[1]["image"][1024], samples[1]["image"][3071]})
	require.Equal(t, loader.Origin{File: "data_batch_2.bin"}, d.Origin(2))

	d, err = cifar.Open(t.Context(), in(file(3, 19, 99)), cifar.Options{})
	require.NoError(t, err)
	require.Equal(t, "[coarse_label uint8 label uint8 image uint8[3 32 32]]", fmt.Sprint(d.Fields()))
	samples, err = drain.Samples(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []byte{19, 19, 19}, drain.Field[uint8](samples, "coarse_label"))
	require.Equal(t, []byte{99, 99, 99}, drain.Field[uint8](samples, "label"))
	require.Equal(t, byte(22), samples[2]["image"][3071])
}

func TestWhatIsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		files []source.Source
		o     cifar.Options
	}{
		"data_batch_2.bin: want pictures of 3073 bytes each or of 3074, as in all files": {in(file(2, 1), file(2, 1, 1)), cifar.Options{}},
		"want pictures of 3073 bytes each or of 3074, as in all files, got 3075 bytes":   {in(file(1, 1, 1, 1)), cifar.Options{}},
		"want pictures of CIFAR-100, of 3074 bytes each, got 3073 bytes":                 {in(file(1, 1)), cifar.Options{Classes: 100}},
	} {
		_, err := cifar.Open(t.Context(), c.files, c.o)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.ErrorContains(t, err, want)
	}
	_, err := cifar.Open(t.Context(), in(nil), cifar.Options{})
	require.ErrorContains(t, err, "cifar: Classes is 0, want 10 or 100: files of these sizes can be either")
	_, err = cifar.Open(t.Context(), in(nil), cifar.Options{Classes: 11})
	require.ErrorContains(t, err, "cifar: Classes is 11")
	_, err = cifar.Open(t.Context(), nil, cifar.Options{Classes: 10})
	require.ErrorContains(t, err, "files is empty")
	_, err = cifar.Open(t.Context(), []source.Source{source.Path("missing")}, cifar.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	for labels, want := range map[string]string{
		"\x0a":     "cifar: data_batch_1.bin: at byte 0: record 0: label: want 0 to 9, got 10",
		"\x14\x00": "at byte 0: record 0: coarse_label: want 0 to 19, got 20",
		"\x00\x64": "at byte 1: record 0: label: want 0 to 99, got 100",
	} {
		d, err := cifar.Open(t.Context(), in(file(1, []byte(labels)...)), cifar.Options{})
		require.NoError(t, err)
		_, err = drain.Samples(t.Context(), d)
		var format *source.FormatError
		require.ErrorAs(t, err, &format)
		require.ErrorContains(t, err, want)
	}
}
