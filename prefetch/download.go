package prefetch

import (
	"context"

	"github.com/leat-go/leat/dtype"
)

// Download is a copy of a field of a batch in memory of its own, as Column shows it, wherever
// the batch lies. On a device it is copied in the batch's stream, behind all that was
// submitted to it, and Download waits for that: it is for a look at the data, while a program
// is written. What every step computes comes back by Prefetcher.Map, or by package
// device/meter, and no step waits.
//
// It is a *ColumnError if there is no such field, or if its elements are of another type.
// When ctx is done before the copy is, its cause is returned.
func Download[T dtype.Element](ctx context.Context, batch Batch, field string) ([]T, error) {
	f, err := holds[T](batch, field)
	if err != nil {
		return nil, err
	}
	if f.View.Size() == 0 { // in host memory, or nothing at all
		return append([]T{}, dtype.As[T](f.Bytes)...), nil
	}
	values := make([]T, f.View.Size()/int64(f.DType.Size()))
	if err := batch.Stream().CopyD2H(dtype.Bytes(values), f.View); err != nil {
		return nil, err
	}
	if err := batch.Stream().Synchronize(ctx); err != nil {
		return nil, err
	}
	return values, nil
}
