package prefetch

import "github.com/leat-go/leat/loader"

// Digest says what the batch holds in a few numbers, to be compared with another run's by
// loader.FirstDifference. It reads all of the batch, at several GB/s. It is a *ColumnError
// for a batch in device memory: NewHost delivers the same batches to the host.
func (b Batch) Digest() (loader.Digest, error) {
	w := b.use("Digest")
	d := loader.Digest{
		Epoch: w.batch.Epoch, Batch: w.batch.Batch, Position: w.batch.Position, Rows: w.batch.N, Valid: w.batch.Valid,
	}
	for _, f := range b.Fields() {
		if f.Bytes == nil && f.View.Size() > 0 {
			return loader.Digest{}, &ColumnError{Field: f.Name, Err: errOnDevice}
		}
		d.Fields = append(d.Fields, loader.DigestField(f.Name, f.Bytes))
	}
	b.use("Digest") // still
	return d, nil
}
