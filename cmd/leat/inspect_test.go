package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/statefile"
)

// inspected is what leat inspect prints of files of package loader, without where they lie.
func inspected(t *testing.T, path string, args ...string) string {
	t.Helper()
	text := output(t, append([]string{"inspect", "../../loader/" + path}, args...)...)
	return strings.ReplaceAll(text, filepath.FromSlash("../../loader/"), "")
}

func TestInspect(t *testing.T) {
	golden(t, "testdata/inspect-csv.txt", inspected(t, "csv/testdata/unix.csv", "-stats"))
	pictures := t.TempDir()
	for k, class := range []string{"ball", "night"} {
		require.NoError(t, os.Mkdir(filepath.Join(pictures, class), 0o700))
		f, err := os.Create(filepath.Join(pictures, class, "1.png"))
		require.NoError(t, err)
		require.NoError(t, errors.Join(png.Encode(f, ball(k)), f.Close()))
	}
	text := output(t, "inspect", pictures, "-samples", "2", "-stats", "-side", "32")
	golden(t, "testdata/inspect-images.txt", strings.ReplaceAll(text, pictures, "pictures"))
	require.Contains(t, output(t, "inspect", pictures, "-color"), "\x1b[38;2;")
	require.ErrorContains(t, run(t.Context(), []string{"inspect", filepath.Join(pictures, "ball")}, &bytes.Buffer{}), "a folder that has one for each class")
	require.Contains(t, inspected(t, "npy/testdata/uint8.npy", "-go"), "package main")
	require.NotContains(t, inspected(t, "npy/testdata/uint8.npy", "-samples", "0"), "sample 0")
	require.Contains(t, inspected(t, "npy/testdata/uint8.npy", "-samples", "9", "-from", "4"), "sample 4")
}

// ball is a picture of a shaded ball, k 0, or of nothing.
func ball(k int) image.Image {
	p := image.NewGray(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			if off := (x-32)*(x-32) + (y-32)*(y-32); k == 0 && off < 900 {
				p.SetGray(x, y, color.Gray{Y: uint8(255 - off/4)})
			}
		}
	}
	return p
}

// A sample that can't be read is told with its file and offset, and the others count.
func TestInspectNamesWhatIsBroken(t *testing.T) {
	data, err := os.ReadFile("../../loader/tfrecord/testdata/examples.tfrecord")
	require.NoError(t, err)
	data[83+12+5] ^= 1 // in the second record
	path := filepath.Join(t.TempDir(), "broken.tfrecord")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	text := output(t, "inspect", path, "-stats")
	require.Contains(t, text, "statistics of 4 samples")
	require.Contains(t, text, "problems: samples that can't be read: 1")
	require.Regexp(t, `  1 \(.*broken.tfrecord, record 1 at offset 83\): tfrecord: `, text)
}

// Texts of files don't reach the terminal as they are.
func TestInspectPrintsNoControlCharacters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"s":"\u001b[2J\u0007"}`+"\n"), 0o600))
	require.NotContains(t, output(t, "inspect", path), "\x1b")
}

func TestInspectReportsAllMistakesAtOnce(t *testing.T) {
	err := run(t.Context(), []string{"inspect", "-samples", "-1", "-limit", "x", "-batch", "-2"}, &bytes.Buffer{})
	for _, mistake := range []string{"PATH is missing", "Samples is -1", `invalid value "x" for flag -limit`, "Batch is -2"} {
		require.ErrorContains(t, err, mistake)
	}
}

// which prints what Loader.Which tells of the loader whose state it is, behind the state and
// before it.
func TestWhich(t *testing.T) {
	ctx := t.Context()
	const path = "../../loader/npy/testdata/stored.npz"
	files, err := source.List(path)
	require.NoError(t, err)
	data, err := npy.Open(ctx, files, npy.Options{Arrays: []string{"image"}}) // other fields than inspect's
	require.NoError(t, err)
	defer data.Close()
	ld, err := loader.New(data, 2, loader.Options{Shuffle: true, Seed: 7})
	require.NoError(t, err)
	for _, at := range []loader.Cursor{{Epoch: 1, Position: 2}, {Epoch: 2}} {
		state := ld.StateAt(at)
		file := filepath.Join(t.TempDir(), "state.json")
		require.NoError(t, statefile.Save(file, state))
		lines := func(s loader.Span) (all []string) {
			samples, err := ld.Which(s)
			require.NoError(t, err)
			for s := range samples {
				all = append(all, fmt.Sprintf("epoch %d batch %d row %d: sample %d, %s", s.Epoch, s.Batch, s.Row, s.Index, s.Origin))
			}
			return all
		}
		printed := func(args ...string) []string {
			all := strings.Split(strings.TrimSpace(output(t, append([]string{"which", file, path, "-batch", "2"}, args...)...)), "\n")
			require.Contains(t, all[0], fmt.Sprintf("epoch %d, %d of 6 samples delivered", at.Epoch, at.Position))
			return all[1:]
		}
		behind, err := ld.Span(state, 0, 3)
		require.NoError(t, err)
		require.Equal(t, placeless(lines(behind)), placeless(printed("-steps", "3")))
		from := loader.Cursor{Epoch: 1}
		if at.Position == 0 {
			from.Position = 4
		}
		require.Equal(t, placeless(lines(loader.Span{From: from, To: at})), placeless(printed("-steps", "1", "-back")))
	}
}

// placeless leaves the offsets out: the first field is another one.
func placeless(lines []string) (all []string) {
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " at offset")
		all = append(all, line)
	}
	return all
}

func TestWhichRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	which := func(s loader.State, args ...string) error {
		require.NoError(t, statefile.Save(file, s))
		return run(t.Context(), append([]string{"which", file, "../../loader/npy/testdata/uint8.npy"}, args...), &bytes.Buffer{})
	}
	require.ErrorContains(t, which(loader.State{Version: 1, Samples: 99}), "99 samples")
	require.ErrorContains(t, which(loader.State{Version: 1, Shards: 2}), "Loader.Trace")
	require.ErrorContains(t, which(loader.State{Version: 1, Samples: 5, Excluded: 3}), "Exclude")
	require.ErrorContains(t, which(loader.State{Version: 1}, "-batch", "0", "-last", "best"), `-last is "best"`)
}
