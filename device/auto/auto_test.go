package auto_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/device/cuda"
)

func TestNoNameOpensAGPUOrSaysWhyNot(t *testing.T) {
	dev, err := auto.Open("")
	require.NoError(t, err)
	defer dev.Close()
	_, gpuErr := cuda.List()
	notes := strings.Join(dev.Notes(), "\n")
	if gpuErr == nil {
		require.Equal(t, "cuda:0", dev.Name())
		require.Contains(t, notes, "first GPU")
		return
	}
	require.Equal(t, "cpu", dev.Name())
	require.Contains(t, notes, "no GPU can be used: ")
	if errors.Is(gpuErr, cuda.ErrNoDriver) {
		require.NotContains(t, notes, "libcuda", "the places that were looked at are for those who ask for a GPU")
	}
}

func TestUnknownNamesListWhatThereIs(t *testing.T) {
	for _, name := range []string{"tpu", "cuda:-1", "cuda:x", "cpu:1", "cuda:999", "CUDA"} {
		_, err := auto.Open(name)
		var unknown *auto.UnknownError
		require.ErrorAs(t, err, &unknown, name)
		require.ErrorIs(t, err, device.ErrUnavailable)
		require.Equal(t, name, unknown.Name)
		require.Contains(t, err.Error(), "cpu")
		if _, gpuErr := cuda.List(); gpuErr != nil {
			require.Contains(t, err.Error(), "no GPU: ")
			require.Equal(t, errors.Is(gpuErr, cuda.ErrNoDriver), errors.Is(err, cuda.ErrNoDriver))
			places := strings.Contains(err.Error(), gpuErr.(*device.Error).Hint)
			require.Equal(t, strings.HasPrefix(name, "cuda") || !errors.Is(gpuErr, cuda.ErrNoDriver), places, name)
		}
	}
}
