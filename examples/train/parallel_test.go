package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda"
)

// trainedBy is a run of the command with -devices. All replicas are one network in the end.
func trainedBy(t *testing.T, devices string, args ...string) summary {
	t.Helper()
	c, err := parse(append(args, "-devices", devices))
	require.NoError(t, err)
	p, err := newParallel(t.Context(), c)
	require.NoError(t, err)
	s, err := p.train(t.Context())
	require.NoError(t, err)
	for _, r := range p.replicas[1:] {
		require.Equal(t, learnt(t, p.replicas[0]), learnt(t, r))
	}
	require.NoError(t, p.close())
	for _, r := range p.replicas {
		usage := r.dev.Usage()
		usage.Allocations = 0
		require.Zero(t, usage, "alive at the end")
	}
	return s
}

// learnt is the gradients of the last step that a replica made, of all parts: replicas that
// began alike and have learnt from the same gradients are alike.
func learnt(t *testing.T, r *replica) []byte {
	t.Helper()
	out := make([]byte, r.gradients.Size())
	require.NoError(t, r.compute.CopyD2H(out, r.gradients))
	require.NoError(t, r.compute.Synchronize(t.Context()))
	return out
}

// Devices that divide the batches among them learn what one learns that adds the same parts
// in the same order, to the last bit, and nearly what one learns from whole batches. The
// order of all their work is checked.
func TestDevicesLearnAsOne(t *testing.T) {
	flags := []string{"-epochs", "1", "-batch", "600"}
	one := trainedBy(t, "cpu", append(flags, "-parts", "2", "-depth", "1", "-workers", "1")...)
	whole := trained(t, append(flags, "-device", "cpu")...)
	t.Setenv("LEAT_ORDER", "1")
	two := trainedBy(t, "cpu,cpu", flags...)
	require.EqualValues(t, 60000, two.Samples)
	require.Equal(t, "cpu,cpu", two.Device)
	require.Equal(t, one.Losses, two.Losses)
	require.Equal(t, one.Accuracy, two.Accuracy)
	require.InDeltaSlice(t, whole.Losses, two.Losses, 1e-5)
}

// The same on GPUs; on one GPU by two devices of it.
func TestGPUDevicesLearnAsOne(t *testing.T) {
	gpus, err := cuda.List()
	if len(gpus) == 0 {
		if os.Getenv("LEAT_GPU") == "required" {
			t.Fatal("LEAT_GPU=required, and ", err)
		}
		t.Skip("needs a GPU: ", err)
	}
	flags := []string{"-epochs", "2", "-batch", "512"}
	one := trainedBy(t, "cuda:0", append(flags, "-parts", "2")...)
	require.Equal(t, one.Losses, trainedBy(t, "cuda:0,cuda:0", flags...).Losses)
	if len(gpus) > 1 {
		two := trainedBy(t, "cuda:0,cuda:1", flags...)
		require.InDeltaSlice(t, one.Losses, two.Losses, 1e-5)
		t.Logf("%.3f s an epoch by one, %.3f by two", one.EpochSeconds[1], two.EpochSeconds[1])
	}
}

func TestDevicesThatCannotDivide(t *testing.T) {
	ctx := t.Context()
	err := run(ctx, []string{"-devices", "cpu,cpu", "-device", "cpu", "-parts", "-1"})
	require.ErrorContains(t, err, "-devices goes with neither -device nor -graph")
	require.ErrorContains(t, err, "-parts is -1")
	require.ErrorContains(t, run(ctx, []string{"-parts", "2"}), "-parts is for -devices")
	require.ErrorContains(t, run(ctx, []string{"-devices", "cpu,cpu,cpu"}), "can't be divided evenly among 3 devices")
	require.ErrorContains(t, run(ctx, []string{"-devices", "cpu,cpu", "-parts", "3"}), "can't be divided evenly among 2 devices")
	require.ErrorIs(t, run(ctx, []string{"-devices", "cpu,tpu:0"}), device.ErrUnavailable)
}
