package kerneltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// A Case is work whose result must not depend on the device: it submits kernels
// to the rig's stream and returns the views they wrote.
type Case struct {
	Name string
	Run  func(r *Rig) []device.View
}

// Agree runs the cases on a CPU device and on a GPU, and wants the same bytes.
func Agree(t *testing.T, cases []Case) {
	gpu := CUDA(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			host, gpu := CPU(t), gpu.in(t)
			want, got := c.Run(host), c.Run(gpu)
			require.Len(t, got, len(want))
			for i := range want {
				equal(t, host.Download(want[i]), gpu.Download(got[i]))
			}
		})
	}
}

// equal names the first difference, for a diff of megabytes helps nobody.
func equal(t testing.TB, want, got []byte) {
	require.Len(t, got, len(want))
	for i := range want {
		if want[i] != got[i] {
			from, to := max(0, i-8), min(len(want), i+8)
			require.Equal(t, want[from:to], got[from:to], "bytes %d to %d of %d; the first difference is at %d", from, to, len(want), i)
		}
	}
}
