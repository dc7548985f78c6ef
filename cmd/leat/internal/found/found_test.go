package found_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/found"
	"github.com/leat-go/leat/loader/tokens"
)

// data are the fixtures of the packages that read them, and what is to be found.
var data = []struct {
	path, format string
	samples      int
	fields       string
}{
	{"npy/testdata/uint8.npy", "npy", 5, "[data uint8[2 2]]"},
	{"npy/testdata/stored.npz", "npy", 6, "[image float32[2 3] label int64 turned int16[4]]"},
	{"csv/testdata/unix.csv", "csv", 5, "[sepal length float32 sepal width float32 species uint8[≤64] note uint8[≤64]]"},
	{"csv/testdata/tab.csv", "csv", 5, "[sepal length float32 sepal width float32 species uint8[≤64] note uint8[≤64]]"},
	{"csv/testdata/semicolon.csv", "csv", 5, "[sepal length float32 sepal width float32 species uint8[≤64] note uint8[≤64]]"},
	{"jsonl/testdata/*.jsonl", "jsonl", 12, "[box float64[2 2] label int64 ok bool text uint8[≤64]]"},
	{"tar/testdata/webdataset.tar", "tar", 5, "[bin uint8[≤4096] cls int64 txt uint8[≤64]]"},
	{"tfrecord/testdata/examples.tfrecord", "tfrecord", 5, "[id int64 image uint8[≤64] name uint8[≤64] scores float32[≤64]]"},
	{"tokens/testdata/gpt2.bin", "tokens", 2, "[tokens uint16[9]]"},
	{"tokens/testdata/text.bin", "tokens", 2, "[tokens uint16[9]]"},
	{"tokens/testdata/plain.bin", "tokens", 2, "[tokens uint16[9]]"},
	{"images/testdata/pets", "images", 4, "[image uint8[64 64 3] label int32]"},
	{"safetensors/testdata/features.safetensors", "safetensors", 0, ""},
}

const loaders = "../../../../loader/"

// Each format is found by what it is, with the fields that its samples have, and looking
// leaves nothing behind.
func TestOpen(t *testing.T) {
	for _, d := range data {
		t.Run(d.path, func(t *testing.T) {
			folder := filepath.Dir(loaders + d.path)
			before, err := os.ReadDir(folder)
			require.NoError(t, err)
			set, err := found.Open(t.Context(), loaders+d.path, found.Options{Window: 8})
			require.NoError(t, err)
			defer set.Close()
			require.Equal(t, d.format, set.Format)
			require.Positive(t, set.Len())
			if d.fields != "" {
				require.Equal(t, d.fields, fmt.Sprint(set.Fields))
				require.Equal(t, d.samples, set.Len())
			}
			require.NotEmpty(t, set.Origin(0).File)
			after, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Equal(t, len(before), len(after))
		})
	}
}

// What can't be told is said with the way out.
func TestOpenRefuses(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	open := func(path string, o found.Options) error {
		set, err := found.Open(t.Context(), path, o)
		if err == nil {
			err = set.Close()
		}
		return err
	}
	require.ErrorIs(t, open(filepath.Join(folder, "nothing"), found.Options{}), os.ErrNotExist)
	require.ErrorContains(t, open(folder, found.Options{}), "there are no files")
	write("a.csv", "x,y\n1,2\n")
	write("b.jsonl", `{"x":1}`)
	var unknown *found.UnknownError
	require.ErrorAs(t, open(folder, found.Options{}), &unknown)
	require.Equal(t, map[string]int{"csv": 1, "jsonl": 1}, unknown.Found)
	require.NoError(t, open(folder, found.Options{Format: "csv"}))
	for name, text := range map[string]string{"p.parquet": "PAR1", "z.zst": "\x28\xb5\x2f\xfd", "o.pkl": "\x80\x04\x95", "t.txt": "text"} {
		write(name, text)
		require.ErrorContains(t, open(filepath.Join(folder, name), found.Options{}), name)
	}
	err := open(folder, found.Options{Format: "gif", Window: -1, Side: 5000, Probe: -2})
	for _, mistake := range []string{`Format is "gif"`, "Window is -1", "Side is 5000", "Probe is -2"} {
		require.ErrorContains(t, err, mistake)
	}
}

// A guess is told.
func TestTokensWithoutAHeaderAreAGuess(t *testing.T) {
	set, err := found.Open(t.Context(), loaders+"tokens/testdata/plain.bin", found.Options{Window: 8})
	require.NoError(t, err)
	defer set.Close()
	require.Contains(t, fmt.Sprint(set.Notes), "uint16 is a guess")
	require.IsType(t, &tokens.Dataset{}, set.Data)
}

// The programs compile, all of them, and one runs.
func TestPrograms(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	overlay := map[string]map[string]string{"Replace": {}}
	var packages []string
	for i, d := range data {
		set, err := found.Open(t.Context(), loaders+d.path, found.Options{Window: 8})
		require.NoError(t, err)
		program := set.Program(4)
		require.NoError(t, set.Close())
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
		name := fmt.Sprintf("cmd/leat/internal/found/program%d", i)
		overlay["Replace"][filepath.Join(root, name, "main.go")] = file
		packages = append(packages, "./"+name)
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	tool := func(args ...string) string {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = root
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	tool(append([]string{"build", "-overlay", file}, packages...)...)
	exe := filepath.Join(t.TempDir(), "program.exe")
	tool("build", "-overlay", file, "-o", exe, packages[0])
	c := exec.CommandContext(t.Context(), exe)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "data uint8 [4 2 2]")
}
