package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/cuda"
)

// TestGPU needs one. All three ways agree there, and with the CPU device.
func TestGPU(t *testing.T) {
	gpu := func() *device.Device {
		dev, err := cuda.Open(cuda.Options{})
		if err != nil && os.Getenv("LEAT_GPU") != "required" {
			t.Skipf("no GPU: %v", err)
		}
		require.NoError(t, err)
		return dev
	}
	c := config{frames: 40, width: 640, height: 360, passes: 2, workers: 2}
	f := smallFilm(t, c)
	s, err := show(t.Context(), gpu(), f, c, &bytes.Buffer{})
	require.NoError(t, err)
	require.True(t, s.Equal)
	host, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	require.Equal(t, pipelinedDigests(t, host, c), pipelinedDigests(t, gpu(), c))
}

func pipelinedDigests(t *testing.T, dev *device.Device, c config) []digest {
	b, err := newBench(dev, smallFilm(t, c), c)
	require.NoError(t, err)
	_, digests, err := b.measure(t.Context(), "pipelined", newPipelined)
	require.NoError(t, err)
	require.NoError(t, b.close())
	return digests
}
