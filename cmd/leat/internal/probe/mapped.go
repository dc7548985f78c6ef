package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
)

// mappedRow is the length of the rows that a kernel reads.
const mappedRow = 4 << 10

// measureMapped has a kernel gather rows in random order from pinned memory, without a
// copy.
func (p *probe) measureMapped(ctx context.Context, r *rig.Rig) error {
	size := p.largest(32<<20) / 2 &^ (mappedRow - 1)
	if size == 0 {
		p.skip("reads of pinned memory by a kernel: there is no memory for them")
		return nil
	}
	rows := int(size / mappedRow)
	table, seen := r.Mapped(int64(size))
	order := r.AllocHost(int64(4*rows), device.HostOptions{})
	out := r.AllocHost(int64(size), device.HostOptions{})
	index, gathered := r.Alloc(int64(4*rows)), r.Alloc(int64(size))
	s := r.Stream("mapped")
	watch := measure.NewStopwatch(r, s)
	if errors.Is(r.Err(), device.ErrUnsupported) {
		p.skip("reads of pinned memory by a kernel: %v", r.Err())
		return nil
	}
	if r.Err() != nil {
		return r.Err()
	}
	feed.Random(table)
	for i, row := range rand.Perm(rows) {
		dtype.As[int32](order)[i] = int32(row)
	}
	if err := s.CopyH2D(index, order); err != nil {
		return err
	}
	gather := func() error {
		return kernels.Gather(s, gathered, seen, index, kernels.GatherParams{RowBytes: mappedRow, Index: dtype.Int32})
	}
	once, err := watch.Time(ctx, gather)
	if err != nil {
		return err
	}
	took, err := watch.Median(ctx, p.runs(p.Runs, once), gather)
	if err != nil {
		return err
	}
	if err := errors.Join(s.CopyD2H(out, gathered), s.Synchronize(ctx)); err != nil {
		return err
	}
	for i, row := range dtype.As[int32](order) {
		at := int(row) * mappedRow
		if !bytes.Equal(out[i*mappedRow:(i+1)*mappedRow], table[at:at+mappedRow]) {
			return fmt.Errorf("row %d that a kernel read in pinned memory came back changed", row)
		}
	}
	p.Mapped = Mapped{Bytes: size, RowBytes: mappedRow, Rate: units.RateOf(size, took)}
	return nil
}
