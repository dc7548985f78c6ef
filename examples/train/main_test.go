package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/observe/timeline"
)

// trained is a run of the command with these flags.
func trained(t *testing.T, args ...string) summary {
	t.Helper()
	c, err := parse(args)
	require.NoError(t, err)
	tr, err := newTraining(t.Context(), c)
	require.NoError(t, err)
	s, err := tr.train(t.Context())
	require.NoError(t, err)
	require.NoError(t, tr.close())
	usage := tr.dev.Usage()
	usage.Allocations = 0
	require.Zero(t, usage, "alive at the end")
	return s
}

// The same seed gives the same losses, to the last bit, whatever the pipeline's shape.
func TestLossesDependOnTheSeedAlone(t *testing.T) {
	one := trained(t, "-device", "cpu", "-epochs", "1", "-depth", "1", "-workers", "1", "-host-slots", "1")
	other := trained(t, "-device", "cpu", "-epochs", "1", "-depth", "5", "-workers", "auto")
	require.Equal(t, one.Losses, other.Losses)
	require.Equal(t, one.Accuracy, other.Accuracy)
	require.Greater(t, one.Accuracy, 0.94, "after an epoch")
	require.EqualValues(t, 60000, one.Samples)

	text, err := json.Marshal(one)
	require.NoError(t, err)
	for _, key := range []string{"device", "epochs", "samples", "accuracy", "loss", "seconds", "samples_per_second",
		"wait_producer_seconds", "wait_copy_seconds", "wait_slot_seconds", "depth", "pinned_bytes", "device_bytes"} {
		require.Contains(t, string(text), `"`+key+`":`)
	}
}

// A step that is captured and replayed trains as the one that is launched kernel by kernel,
// to the last bit.
func TestAGraphTrainsAsLaunchesDo(t *testing.T) {
	flags := []string{"-device", "cpu", "-epochs", "1", "-batch", "517"} // the last one is short
	launched := trained(t, flags...)
	require.Zero(t, launched.Replays)
	replayed := trained(t, append(flags, "-graph")...)
	require.Positive(t, replayed.Replays)
	require.Equal(t, launched.Losses, replayed.Losses)
	require.Equal(t, launched.Accuracy, replayed.Accuracy)
	require.Len(t, replayed.EpochSeconds, 1)
	// With the order of all work checked it is captured, and compared, at every step.
	t.Setenv("LEAT_ORDER", "1")
	checked := trained(t, append(flags, "-graph")...)
	require.Zero(t, checked.Replays)
	require.Equal(t, launched.Losses, checked.Losses)
}

// The same on a GPU.
func TestGPUAGraphTrainsAsLaunchesDo(t *testing.T) {
	if dev, err := cuda.Open(cuda.Options{}); err == nil {
		require.NoError(t, dev.Close())
	} else if os.Getenv("LEAT_GPU") == "required" {
		t.Fatal("LEAT_GPU=required, and ", err)
	} else {
		t.Skip("needs a GPU: ", err)
	}
	for _, flags := range [][]string{{"-batch", "128"}, {"-batch", "1000", "-depth", "1"}} {
		flags = append(flags, "-device", "cuda:0", "-epochs", "2")
		launched := trained(t, flags...)
		replayed := trained(t, append(flags, "-graph")...)
		require.Positive(t, replayed.Replays)
		require.Equal(t, launched.Losses, replayed.Losses)
		require.Equal(t, launched.Accuracy, replayed.Accuracy)
	}
}

func TestInterruptedItStops(t *testing.T) {
	c, err := parse([]string{"-device", "cpu", "-epochs", "1000"})
	require.NoError(t, err)
	ctx, interrupt := context.WithCancelCause(t.Context())
	tr, err := newTraining(ctx, c)
	require.NoError(t, err)
	interrupted := errors.New("interrupted")
	stopped := make(chan error)
	go func() {
		_, err := tr.train(ctx)
		stopped <- err
	}()
	interrupt(interrupted)
	require.ErrorIs(t, <-stopped, interrupted)
	require.NoError(t, tr.close())
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	ctx := t.Context()
	err := run(ctx, []string{"-epochs", "0", "-batch", "0", "-workers", "-1", "-host-slots", "-2", "-depth", "-7", "more"})
	for _, mistake := range []string{"-epochs is 0", "-batch is 0", "-workers is -1", "-host-slots is -2", "-depth is -7", `unexpected argument "more"`} {
		require.ErrorContains(t, err, mistake)
	}
	require.ErrorContains(t, run(ctx, []string{"-depth", "deep"}), `invalid value "deep" for flag -depth`)

	var unknown *auto.UnknownError
	require.ErrorAs(t, run(ctx, []string{"-device", "tpu:0"}), &unknown)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"), []byte("not MNIST"), 0o600))
	err = run(ctx, []string{"-data", dir})
	var missing *mnist.MissingError
	require.True(t, errors.As(err, &missing) || errors.Is(err, mnist.ErrDigest), "%v", err)
	require.ErrorContains(t, err, dir)
}

// The timeline that -trace writes is of the run, and can be drawn; -ceiling changes no loss.
func TestTheReportOfARun(t *testing.T) {
	flags := []string{"-device", "cpu", "-epochs", "1", "-batch", "600"}
	plain := trained(t, flags...)
	file := filepath.Join(t.TempDir(), "run.json")
	c, err := parse(append(flags, "-trace", file, "-ceiling"))
	require.NoError(t, err)
	tr, err := newTraining(t.Context(), c)
	require.NoError(t, err)
	s, err := tr.train(t.Context())
	require.NoError(t, err)
	require.NoError(t, tr.report(t.Context(), c))
	require.NoError(t, tr.close())
	require.Equal(t, plain.Losses, s.Losses)
	text, err := os.Open(file)
	require.NoError(t, err)
	defer text.Close()
	tl, err := timeline.Read(text)
	require.NoError(t, err)
	require.Len(t, tl.Notes, 1)
	for _, group := range []string{timeline.Workers, timeline.HostSlots, timeline.Copies, timeline.Compute, timeline.Loop} {
		require.NotEmpty(t, tl.Group(group), group)
	}
}
