package goid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/internal/goid"
)

func TestGoroutinesAreToldApart(t *testing.T) {
	own := goid.Current()
	require.NotZero(t, own)
	require.Equal(t, own, goid.Current())
	other := make(chan uint64)
	go func() { other <- goid.Current() }()
	require.NotContains(t, []uint64{0, own}, <-other)
}
