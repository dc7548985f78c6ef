package loader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// twofold is a dataset of another one's samples, read by way of a Scratch: the first
// random number that the sample drew, and the first of its own.
type twofold struct {
	inner loader.Dataset
}

func (d twofold) Len() int { return d.inner.Len() }

func (d twofold) Fields() []loader.Field {
	return append([]loader.Field{{Name: "own", DType: dtype.Uint64}}, numberFields...)
}

func (d twofold) Read(ctx context.Context, index int, row *loader.Row) error {
	s, err := loader.NewScratch(d.inner.Fields())
	if err != nil {
		return err
	}
	inner := s.Begin(row)
	if err := errors.Join(d.inner.Read(ctx, index, inner), s.Written()); err != nil {
		return err
	}
	for _, f := range numberFields {
		copy(row.Bytes(f.Name), inner.Bytes(f.Name))
	}
	return loader.Write(row, "own", row.Rand().Uint64())
}

func TestAScratchHasTheRowsPlaceAndOtherRandomNumbers(t *testing.T) {
	l, err := loader.New(twofold{numbers{n: 10}}, 4, loader.Options{Seed: 3, Shuffle: true, Epochs: 2})
	require.NoError(t, err)
	own := map[uint64]bool{}
	mem := heap(t, l, 2)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	for {
		f, err := run.Next(t.Context())
		if errors.Is(err, loader.ErrEpochEnd) {
			continue
		}
		if errors.Is(err, loader.ErrEnd) {
			break
		}
		require.NoError(t, err)
		for row, epoch := range values[int32](l, f, "epoch") {
			position := f.Position + int64(row)
			require.EqualValues(t, f.Epoch, epoch)
			require.Equal(t, position, values[int64](l, f, "position")[row])
			require.EqualValues(t, l.Order(f.Epoch).At(position), values[int64](l, f, "index")[row])
			for _, name := range []string{"own", "random"} {
				number := values[uint64](l, f, name)[row]
				require.False(t, own[number], "no two draws are the same")
				own[number] = true
			}
		}
		mem.Put(f.Slot)
	}
	require.Len(t, own, 40)
	require.NoError(t, run.Close())
}

func TestAScratchFindsWhatWasNotWritten(t *testing.T) {
	s, err := loader.NewScratch(numberFields)
	require.NoError(t, err)
	row := s.Begin(new(loader.Row))
	writeNumber(1, row)
	require.NoError(t, s.Written())
	s.Begin(new(loader.Row))
	var missing *loader.UnwrittenError
	require.ErrorAs(t, s.Written(), &missing)
	require.Equal(t, "index", missing.Field.Name)
}

func TestDescribe(t *testing.T) {
	n, fields, err := loader.Describe(numbers{n: 0})
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, numberFields, fields)
	for name, c := range map[string]struct {
		ds   loader.Dataset
		want string
	}{
		"no dataset":  {nil, "Dataset is <nil>"},
		"no function": {loader.FromFunc(1, numberFields, nil), "read is a nil func"},
		"a length":    {numbers{n: -1}, "Len is -1"},
		"no fields":   {loader.FromFunc(1, nil, numbers{}.Read), "Fields is empty"},
	} {
		_, _, err := loader.Describe(c.ds)
		require.ErrorAs(t, err, new(*loader.OptionError), name)
		require.ErrorContains(t, err, c.want, name)
	}
}
