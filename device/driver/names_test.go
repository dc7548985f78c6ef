package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/driver"
)

// Every kind has a name, and a number beyond the last one has a name too.
func TestEveryKindHasAName(t *testing.T) {
	for _, k := range []struct {
		last uint8
		name func(k uint8) string
		is   string
	}{
		{uint8(driver.CaptureActive), func(k uint8) string { return driver.CaptureError(k).Error() },
			"the stream is in a graph capture already"},
		{uint8(driver.HostNode), func(k uint8) string { return driver.NodeKind(k).String() },
			"host function"},
		{uint8(driver.ThroughHost), func(k uint8) string { return driver.WayKind(k).String() }, "host memory"},
	} {
		require.Equal(t, k.is, k.name(k.last))
		require.Regexp(t, `^(driver\.)?\w+\(\d+\)$`, k.name(k.last+1))
	}
	require.Equal(t, "driver.CaptureError(0)", driver.CaptureError(0).Error())
}
