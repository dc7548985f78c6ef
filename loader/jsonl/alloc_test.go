//go:build !race

package jsonl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/jsonl"
)

// The race detector has the compiler allocate what it otherwise does not.
func TestALineAllocatesNothing(t *testing.T) {
	d, err := jsonl.Open(t.Context(), in(strings.Repeat(`{"text":"plain","label":-3,"box":[[1,2.5],[3e4,4]],"ok":true,"more":[{}]}`+"\n", 4000)), fields, jsonl.Options{})
	require.NoError(t, err)
	allocs, err := drain.Allocs(t.Context(), d, 8)
	require.NoError(t, err)
	require.Zero(t, allocs)
}
