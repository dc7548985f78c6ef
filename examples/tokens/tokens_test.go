package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cuda"
)

// asCommand has the test's own program be the command.
const asCommand = "LEAT_TOKENS_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// text is a folder with a small text.
func text(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"training.go", "main.go"} {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), b, 0o600))
	}
	return folder
}

// losses are the lines with those of a run.
func losses(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, &out))
	return lossLines(out.String())
}

func lossLines(text string) string {
	return text[max(0, strings.Index(text, "epoch 1: ")):]
}

// Killed at any instant, and gone on with by other workers and another depth, it ends at the
// losses of a run that was not, to the last bit.
func TestKilledAndResumedItEndsAtTheSameLosses(t *testing.T) {
	flags := []string{"-device", "cpu", "-text", text(t), "-batch", "8", "-epochs", "4"}
	whole := losses(t, flags...)
	require.Equal(t, 4, strings.Count(whole, "loss"))
	require.Equal(t, whole, losses(t, append(flags, "-workers", "1", "-depth", "1")...))

	path := filepath.Join(t.TempDir(), "tokens.state")
	flags = append(flags, "-checkpoint", path, "-checkpoint-every", "3", "-resume")
	random := rand.New(rand.NewPCG(1, 2))
	exe, err := os.Executable()
	require.NoError(t, err)
	kills := 0
	for _, more := range [][]string{{"-workers", "1", "-depth", "1"}, {"-workers", "3"}, {"-depth", "5"}, {"-workers", "7", "-depth", "2"}} {
		c := exec.CommandContext(t.Context(), exe, append(flags, more...)...)
		c.Env = append(os.Environ(), asCommand+"=1")
		before, _ := os.ReadFile(path)
		require.NoError(t, c.Start())
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for alive := true; alive; {
			select {
			case err := <-ended: // it was faster
				require.NoError(t, err)
				alive = false
			case <-time.After(time.Duration(random.Int64N(int64(3 * time.Millisecond)))):
				if now, _ := os.ReadFile(path); !bytes.Equal(before, now) && random.IntN(6) == 0 {
					require.NoError(t, c.Process.Kill())
					<-ended
					kills, alive = kills+1, false
				}
			}
		}
	}
	require.Positive(t, kills)
	require.Equal(t, whole, losses(t, append(flags, "-depth", "4")...))
	require.Equal(t, whole, losses(t, flags...), "all is done")
}

func TestItLearns(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-device", "cpu", "-text", text(t), "-batch", "2", "-epochs", "3"}, &out))
	lines := strings.Split(strings.TrimSpace(lossLines(out.String())), "\n")
	require.Len(t, lines, 3)
	require.Less(t, loss(t, lines[2]), loss(t, lines[0]))
	require.Less(t, loss(t, lines[2]), 4.0, "5.5 is that of a guess")
}

// loss is the number in a line.
func loss(t *testing.T, line string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
	require.NoError(t, err)
	return v
}

func TestInterruptedItStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, []string{"-device", "cpu", "-text", text(t)}, &bytes.Buffer{}), context.Canceled)
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	err := run(t.Context(), []string{"-window", "0", "-batch", "-1", "-width", "0", "-epochs", "0", "-workers", "-1", "-depth", "-1", "-resume", "more"}, &bytes.Buffer{})
	for _, mistake := range []string{"-window is 0", "-batch is -1", "-width is 0", "-epochs is 0", "-workers is -1", "-depth is -1", "-resume needs -checkpoint", `unexpected argument "more"`} {
		require.ErrorContains(t, err, mistake)
	}
	require.ErrorContains(t, run(t.Context(), []string{"-text", t.TempDir()}, &bytes.Buffer{}), "no files of Go")
}

// The same on a GPU.
func TestGPUResumedItEndsAtTheSameLosses(t *testing.T) {
	if dev, err := cuda.Open(cuda.Options{}); err == nil {
		require.NoError(t, dev.Close())
	} else if os.Getenv("LEAT_GPU") == "required" {
		t.Fatal("LEAT_GPU=required, and ", err)
	} else {
		t.Skip("needs a GPU: ", err)
	}
	flags := []string{"-device", "cuda:0", "-text", text(t), "-batch", "2"}
	whole := losses(t, append(flags, "-epochs", "4")...)
	flags = append(flags, "-checkpoint", filepath.Join(t.TempDir(), "tokens.state"), "-checkpoint-every", "7", "-resume")
	first := losses(t, append(flags, "-epochs", "2")...)
	require.True(t, strings.HasPrefix(whole, first))
	require.Equal(t, whole, losses(t, append(flags, "-epochs", "4", "-depth", "1", "-workers", "2")...))
}
