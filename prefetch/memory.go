package prefetch

import (
	"context"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// hostSlots is the pool as the loader's workers see it: they hold a buffer from
// Get until its batch is delivered, and know nothing of devices.
type hostSlots struct{ pool *pinnedpool.Pool }

var _ loader.Memory = hostSlots{}

func (m hostSlots) Get(ctx context.Context) (loader.Slot, error) {
	b, err := m.pool.Get(ctx)
	if err != nil {
		return loader.Slot{}, err
	}
	return loader.Slot{ID: b.ID(), Bytes: b.Bytes()}, nil
}

func (m hostSlots) Put(s loader.Slot) { m.pool.Put(m.pool.Buffer(s.ID)) }

func (m hostSlots) Quarantine(s loader.Slot, _ error) { m.pool.Quarantine(m.pool.Buffer(s.ID)) }
