package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	// What the programs are built from, so that the result of another state is not taken
	// from the cache.
	_ "github.com/leat-go/leat/device/auto"
	_ "github.com/leat-go/leat/device/meter"
	_ "github.com/leat-go/leat/loader/idx"
	_ "github.com/leat-go/leat/loader/ranks"
	_ "github.com/leat-go/leat/loader/records"
	_ "github.com/leat-go/leat/loader/statefile"
	_ "github.com/leat-go/leat/observe/ui"
	_ "github.com/leat-go/leat/prefetch/chain"
	_ "github.com/leat-go/leat/tensors"
)

// All programs of all pages are one module, which has no other access to Leat than a
// user's has, and are built at once.
func TestProgramsPrintWhatThePageSays(t *testing.T) {
	folder := t.TempDir()
	mod := strings.Replace(read(t, "go.mod"), "module github.com/leat-go/leat\n", "module pages\n", 1)
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	mod += "\nrequire github.com/leat-go/leat v0.0.0\n\nreplace github.com/leat-go/leat => " + filepath.ToSlash(here) + "\n"
	write(t, folder, "go.mod", mod)
	write(t, folder, "go.sum", read(t, "go.sum"))

	type program struct{ name, where, want string }
	var programs []program
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			if !b.program() {
				continue
			}
			where := fmt.Sprintf("%s:%d", p.name, b.line)
			require.True(t, i+1 < len(p.blocks) && p.blocks[i+1].mark == "output", "%s: no output behind the program", where)
			name := fmt.Sprintf("%s%d", p.stem(), b.line)
			write(t, folder, name+"/main.go", b.text)
			if beside := filepath.Join("testdata", p.stem()); exists(beside) {
				require.NoError(t, os.CopyFS(filepath.Join(folder, name), os.DirFS(beside)))
			}
			programs = append(programs, program{name, where, p.blocks[i+1].text})
		}
	}
	require.NotEmpty(t, programs)

	bin := filepath.Join(folder, "bin") + string(filepath.Separator)
	require.NoError(t, os.Mkdir(bin, 0o700))
	build := exec.Command("go", "build", "-o", bin, "./...")
	build.Dir, build.Env = folder, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	for _, p := range programs {
		t.Run(p.where, func(t *testing.T) {
			t.Parallel()
			path, err := filepath.Glob(filepath.Join(bin, p.name+"*")) // .exe on Windows
			require.NoError(t, err)
			require.Len(t, path, 1)
			run := exec.Command(path[0])
			run.Dir, run.Env = t.TempDir(), append(os.Environ(), "LEAT_ORDER=1")
			var stderr strings.Builder
			run.Stderr = &stderr
			out, err := run.Output()
			require.NoError(t, err, "%s", &stderr)
			require.Equal(t, p.want, string(out), "%s", &stderr)
		})
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var indentation = regexp.MustCompile(`(?m)^[\t ]+`)

// A part of a program stands in a file that is compiled and run.
func TestPartsStandInFilesThatRun(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			where := fmt.Sprintf("%s:%d", p.name, b.line)
			from, marked := strings.CutPrefix(b.mark, "from ")
			if b.lang == "go" && !b.program() {
				require.True(t, marked, "%s: the block is no program, and says not where it is from", where)
			}
			if !marked {
				continue
			}
			source := ""
			if from == "the program" {
				for _, other := range p.blocks {
					if other.program() {
						source += other.text
					}
				}
			} else {
				require.Regexp(t, `_test\.go$|^examples/|/testdata/`, from, "%s: no test runs it", where)
				source = read(t, from)
			}
			part := indentation.ReplaceAllString(b.text, "")
			require.Contains(t, indentation.ReplaceAllString(source, ""), part, "%s is not from %s", where, from)
		}
	}
}

// The command that a page gives makes the PTX that its program is run with.
func TestThePTXIsMadeByThePagesCommand(t *testing.T) {
	if _, err := exec.LookPath("clang-14"); err != nil {
		t.Skipf("no compiler to make PTX with: %v", err)
	}
	made := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			name, makes := strings.CutPrefix(b.mark, "makes ")
			if !makes {
				continue
			}
			folder, beside := t.TempDir(), filepath.Join("testdata", p.stem())
			require.NoError(t, os.CopyFS(folder, os.DirFS(beside)))
			require.NoError(t, os.Remove(filepath.Join(folder, name)))
			words := strings.Fields(b.text)
			compile := exec.Command(words[0], words[1:]...)
			compile.Dir = folder
			out, err := compile.CombinedOutput()
			require.NoError(t, err, "%s", out)
			want, err := os.ReadFile(filepath.Join(beside, name))
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(folder, name))
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), "%s:%d", p.name, b.line)
			made++
		}
	}
	require.Equal(t, 1, made)
}
