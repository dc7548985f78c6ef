//go:build leat_nocuda

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

func TestBuiltWithoutCUDA(t *testing.T) {
	_, err := Open(Options{})
	require.ErrorIs(t, err, device.ErrUnavailable)
	require.ErrorContains(t, err, "leat_nocuda")
}
