package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// records is a dataset of records of equal length that lie one behind the other in a file.
type records struct {
	file  source.File
	bytes int
	after func(index int) // each read
}

func (r records) Len() int { return int(r.file.Size()) / r.bytes }

func (r records) Fields() []loader.Field {
	return []loader.Field{{Name: "record", DType: dtype.Uint8, Shape: []int{r.bytes}}}
}

func (r records) Read(ctx context.Context, i int, row *loader.Row) error {
	err := source.ReadFull(ctx, r.file, row.Bytes("record"), int64(i)*int64(r.bytes))
	if r.after != nil {
		r.after(i)
	}
	return err
}

// A file is truncated in the middle of an epoch. The samples that are gone fail with the
// file and the offset, or are substituted; the others are as they were, and another
// dataset that is read at the same time doesn't notice.
func TestAnEpochOverAFileThatIsTruncated(t *testing.T) {
	const length, samples, left, workers = 256, 4096, 3000, 4
	data := random(length * samples)
	for kind, open := range kinds {
		for _, policy := range []loader.ErrorPolicy{loader.Fail, loader.Substitute} {
			t.Run(fmt.Sprintf("%s/%v", kind, policy), func(t *testing.T) {
				path := write(t, data)
				f, err := open(path).Open(t.Context())
				require.NoError(t, err)
				unharmed, err := open(write(t, data)).Open(t.Context())
				require.NoError(t, err)
				cut := func(i int) {
					if i == samples/4 {
						if err := os.Truncate(path, left*length); err != nil {
							panic(err)
						}
					}
				}
				o := loader.Options{Workers: workers, Epochs: 1, OnError: policy}
				substituted, err := epoch(t, records{f, length, cut}, data, o)
				if policy == loader.Fail {
					var failed *loader.Error
					var told *source.Error
					require.ErrorAs(t, err, &failed)
					require.ErrorAs(t, err, &told)
					require.ErrorIs(t, err, source.ErrChanged)
					require.Equal(t, path, told.Source)
					require.EqualValues(t, failed.Sample*length, told.Offset)
					require.GreaterOrEqual(t, failed.Sample, left)
				} else {
					require.NoError(t, err)
					require.Equal(t, samples-left, substituted)
				}
				_, err = epoch(t, records{unharmed, length, nil}, data, o)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				require.NoError(t, unharmed.Close())
			})
		}
	}
}

// epoch reads all samples, and checks those that are not substituted.
func epoch(t *testing.T, ds records, data []byte, o loader.Options) (substituted int, err error) {
	l, err := loader.New(ds, 64, o)
	require.NoError(t, err)
	mem, err := loader.NewHeap(l.Layout().Size(), 4)
	require.NoError(t, err)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	defer func() { require.NoError(t, run.Close()) }()
	for {
		b, err := run.Next(t.Context())
		if errors.Is(err, loader.ErrEpochEnd) {
			return substituted, nil
		} else if err != nil {
			return substituted, err
		}
		other := map[int]int{}
		for _, s := range b.Substituted {
			require.ErrorIs(t, s.Err, source.ErrChanged)
			other[s.Row] = s.Substitute
		}
		substituted += len(other)
		rows := l.Layout().Rows(0, b)
		for i := range b.N {
			index, is := other[i]
			if !is {
				index = int(b.Position) + i
			}
			require.Equal(t, string(data[index*ds.bytes:][:ds.bytes]), string(rows[i*ds.bytes:][:ds.bytes]))
		}
		mem.Put(b.Slot)
	}
}
