package filter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestPTXIsMadeFromTheSource(t *testing.T) { kerneltest.Rebuilt(t, "./generate.sh", ptx) }

func TestPTXIsInlined(t *testing.T) { kerneltest.Inlined(t, ptx) }

func TestPTXHasNoFloats(t *testing.T) {
	require.NotRegexp(t, `\.f(16|32|64)\b`, ptx, "only integers give the same result in any order")
}
