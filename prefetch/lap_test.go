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
	row.Uint8s(0)[0] = 0
	return nil
}

// Somebody records an event of the slot's in between: the next Wait for it would
// bind to a Record that isn't the one meant, and is reported by name.
func TestAWaitForAnotherLapIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		event func(*carrier) *device.Event
		want  string
	}{
		"ready":    {func(c *carrier) *device.Event { return c.ready }, `stream "compute" would wait for lap 2 of event "ready 0", lap 1 is meant`},
		"consumed": {func(c *carrier) *device.Event { return c.consumed[0] }, `stream "copy" would wait for lap 2 of event "consumed 0.0", lap 1 is meant`},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := cpu.Open(cpu.Options{})
			require.NoError(t, err)
			compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
			require.NoError(t, err)
			ld, err := loader.New(zeros(1), loader.Options{BatchSize: 1, Workers: 1})
			require.NoError(t, err)
			p, err := New(compute, ld, Options{Depth: 1})
			require.NoError(t, err)
			event := c.event(p.carriers[0])
			var failed error
			for b, err := range p.Batches(t.Context()) {
				require.NoError(t, err)
				if name == "ready" {
					b.slot.carrier.users = b.slot.carrier.users[:0]
					require.NoError(t, p.copy.Record(event))
					failed = b.UsedOn(compute)
				}
			}
			if name == "consumed" {
				require.NoError(t, compute.Record(event))
				for _, err := range p.Batches(t.Context()) {
					failed = err
				}
			}
			require.ErrorContains(t, failed, c.want)
			require.NoError(t, dev.Synchronize(t.Context()))
			require.NoError(t, p.Close())
			require.NoError(t, compute.Close())
			require.NoError(t, dev.Close())
		})
	}
}
