package fuzz

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// compositions are what a dataset may be wrapped in: each has its samples at their indices,
// with their bytes and their troubles, so that the reference stays the same.
var compositions = []string{"", "halves", "mixed", "mapped", "zipped"}

// composed wraps a dataset.
func composed(ds loader.Dataset, how string) (loader.Dataset, error) {
	switch how {
	case "":
		return ds, nil
	case "halves":
		return halves(ds)
	case "mixed":
		return compose.Mix(1, compose.Once, compose.Source{Dataset: ds, Weight: 1, InOrder: true})
	case "mapped":
		return mapped(ds)
	case "zipped":
		return zipped(ds)
	}
	return nil, fmt.Errorf("no composition %q", how)
}

// halves puts it together from two parts, the second of which is repeated once.
func halves(ds loader.Dataset) (loader.Dataset, error) {
	first, err := compose.Take(ds, ds.Len()/2)
	if err != nil {
		return nil, err
	}
	second, err := compose.Skip(ds, ds.Len()/2)
	if err != nil {
		return nil, err
	}
	if second, err = compose.Repeat(second, 1); err != nil {
		return nil, err
	}
	return compose.Concat(first, second)
}

// mapped copies each sample twice. Its random number is that of the row in which it ends.
// Nothing is tried again, since that takes time: a context's deadline calls itself temporary.
func mapped(ds loader.Dataset) (loader.Dataset, error) {
	again, err := compose.Retry(ds, compose.RetryOptions{Attempts: 1})
	if err != nil {
		return nil, err
	}
	return compose.Map(again, ds.Fields(), func(_ context.Context, in, out *loader.Row) error {
		out.CopyFrom(in)
		return loader.Write(out, "random", out.Rand().Uint64())
	})
}

// zipped has a field of another dataset taken off again.
func zipped(ds loader.Dataset) (loader.Dataset, error) {
	other := loader.FromFunc(ds.Len(), []loader.Field{{Name: "other", DType: ds.Fields()[idField].DType}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "other", int64(i)) })
	both, err := compose.Zip(other, ds)
	if err != nil {
		return nil, err
	}
	return compose.Map(both, ds.Fields(), func(_ context.Context, in, out *loader.Row) error {
		for _, f := range ds.Fields() {
			if f.Ragged == nil {
				copy(out.Bytes(f.Name), in.Bytes(f.Name))
			} else if err := loader.Write(out, f.Name, loader.Value[uint8](in, f.Name)...); err != nil {
				return err
			}
		}
		if got := loader.Value[int64](in, "other")[0]; got != loader.Value[int64](in, "id")[0] {
			return fmt.Errorf("sample %d lies beside %d", loader.Value[int64](in, "id")[0], got)
		}
		return loader.Write(out, "random", out.Rand().Uint64())
	})
}
