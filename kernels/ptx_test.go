package kernels

import (
	"testing"

	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestPTXIsMadeFromTheSources(t *testing.T) { kerneltest.Rebuilt(t, "./generate.sh", ptx) }

func TestPTXFusesNothing(t *testing.T) { kerneltest.Unfused(t, ptx) }

func TestPTXIsInlined(t *testing.T) { kerneltest.Inlined(t, ptx) }
