package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cuda"
)

// A run that ended anywhere, and is gone on with by other workers, another depth and by a graph,
// ends with the losses of one that was not.
func TestResumedItEndsAtTheSameLosses(t *testing.T) {
	flags := []string{"-device", "cpu", "-epochs", "2", "-batch", "1000"}
	whole := trained(t, flags...)
	path := filepath.Join(t.TempDir(), "mnist.state")
	flags = append(flags, "-checkpoint", path, "-checkpoint-every", "20", "-resume") // the third of an epoch is its last step
	interrupted(t, 35, append(flags, "-workers", "1", "-depth", "1")...)             // saved at step 20
	interrupted(t, 55, append(flags, "-workers", "3", "-graph")...)                  // saved at the first epoch's end
	resumed := trained(t, append(flags, "-depth", "4", "-workers", "2")...)
	require.Equal(t, whole.Losses, resumed.Losses)
	require.Equal(t, whole.Accuracy, resumed.Accuracy)
	require.Less(t, resumed.Samples, whole.Samples, "it did not begin at the beginning")
	again := trained(t, flags...)
	require.Equal(t, whole.Losses, again.Losses)
	require.Zero(t, again.Samples, "all is done")
}

// interrupted runs the command for so many steps at most.
func interrupted(t *testing.T, steps int, args ...string) {
	t.Helper()
	c, err := parse(args)
	require.NoError(t, err)
	tr, err := newTraining(t.Context(), c)
	require.NoError(t, err)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	tr.afterStep = func() {
		if steps--; steps == 0 {
			cancel(stop)
		}
	}
	_, err = tr.train(ctx)
	require.ErrorIs(t, err, stop)
	require.NoError(t, tr.close())
}

func TestResumeRefuses(t *testing.T) {
	_, err := parse([]string{"-resume", "-checkpoint-every", "0"})
	require.ErrorContains(t, err, "-resume needs -checkpoint")
	require.ErrorContains(t, err, "-checkpoint-every is 0")
	_, err = parse([]string{"-checkpoint", "x", "-devices", "cpu,cpu"})
	require.ErrorContains(t, err, "-checkpoint is for one device")
}

// What is saved on a GPU is gone on with there, to the same losses.
func TestGPUResumedItEndsAtTheSameLosses(t *testing.T) {
	if dev, err := cuda.Open(cuda.Options{}); err == nil {
		require.NoError(t, dev.Close())
	} else if os.Getenv("LEAT_GPU") == "required" {
		t.Fatal("LEAT_GPU=required, and ", err)
	} else {
		t.Skip("needs a GPU: ", err)
	}
	for _, graph := range [][]string{nil, {"-graph"}} {
		flags := append([]string{"-device", "cuda:0", "-epochs", "2", "-batch", "1000"}, graph...)
		whole := trained(t, flags...)
		flags = append(flags, "-checkpoint", filepath.Join(t.TempDir(), "mnist.state"), "-checkpoint-every", "20", "-resume")
		interrupted(t, 85, append(flags, "-depth", "1")...)
		resumed := trained(t, append(flags, "-workers", "4")...)
		require.Equal(t, whole.Losses, resumed.Losses)
		require.Equal(t, whole.Accuracy, resumed.Accuracy)
	}
}
