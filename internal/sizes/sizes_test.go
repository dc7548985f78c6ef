package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	// What is looked at, so that the result of another state is not taken from the cache.
	_ "github.com/leat-go/leat/device/auto"
	_ "github.com/leat-go/leat/prefetch"
)

// A program that loads data pays for nothing that it does not use.
func TestHelloIsSmall(t *testing.T) {
	b, err := build(forms[0])
	require.NoError(t, err)
	require.LessOrEqual(t, b.bytes, int64(4e6))
	require.Subset(t, []string{
		"github.com/KimMachineGun/automemlimit",
		"github.com/pbnjay/memory", // automemlimit's
		"github.com/ebitengine/purego",
		"golang.org/x/sys",
	}, b.modules)
	require.Positive(t, b.inits)
}

func TestWithoutCUDAThereIsNoPurego(t *testing.T) {
	b, err := build(forms[1])
	require.NoError(t, err)
	require.NotContains(t, b.modules, "github.com/ebitengine/purego")
}
