//go:build invariants

package prefetch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

type zeros int

func (z zeros) Len() int { return int(z) }

func (zeros) Fields() []loader.Field {
	return []loader.Field{{Name: "zero", DType: dtype.Uint8}}
}

func (zeros) Read(_ context.Context, _ int, row *loader.Row) error {
	row.Bytes("zero")[0] = 0
	return nil
}

// Somebody records an event of the slot's in between: the next Wait for it would
// bind to a Record that isn't the one meant, and is reported by name.
func TestAWaitForAnotherLapIsReported(t *testing.T) {
	for name, want := range map[string]string{
		"ready":    `stream "other" would wait for lap 2 of event "ready 0", lap 1 is meant`,
		"consumed": `stream "copy" would wait for lap 2 of event "consumed`,
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := cpu.Open(cpu.Options{})
			require.NoError(t, err)
			compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
			require.NoError(t, err)
			ld, err := loader.New(zeros(1), 1, loader.Options{Workers: 1})
			require.NoError(t, err)
			p, err := New(compute, ld, Options{Depth: 1})
			require.NoError(t, err)
			other, err := dev.NewStream(device.StreamOptions{Name: "other"})
			require.NoError(t, err)
			var failed error
			for b, err := range p.Batches(t.Context()) {
				require.NoError(t, err)
				if name == "ready" {
					require.NoError(t, p.stages.copies.Record(p.stages.ring.slots[0].filled))
					failed = b.UsedOn(other)
				}
			}
			if name == "consumed" {
				require.NoError(t, compute.Record(p.stages.ring.slots[0].reads.list[0].done))
				for _, err := range p.Batches(t.Context()) {
					failed = err
				}
			}
			require.ErrorContains(t, failed, want)
			require.NoError(t, dev.Synchronize(t.Context()))
			require.NoError(t, p.Close())
			require.NoError(t, other.Close())
			require.NoError(t, compute.Close())
			require.NoError(t, dev.Close())
		})
	}
}
