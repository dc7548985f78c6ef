package prefetch_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// every is a dataset with a field of each element type.
type every struct{ types []dtype.Type }

func everyType() every {
	var e every
	for t := dtype.Bool; t.Valid(); t++ {
		e.types = append(e.types, t)
	}
	return e
}

func (e every) Len() int { return 10 }

func (e every) Fields() []loader.Field {
	var fields []loader.Field
	for _, t := range e.types {
		fields = append(fields, loader.Field{Name: t.String(), DType: t, Shape: []int{3}})
	}
	return append(fields, loader.Field{Name: "empty", DType: dtype.Float32, Shape: []int{0, 3}})
}

func (e every) Read(_ context.Context, index int, row *loader.Row) error {
	for _, t := range e.types {
		b := row.Bytes(t.String())
		clear(b)
		for j := 0; j < len(b); j += len(b) / 3 {
			b[j] = byte(index) & 1 // a legal bool too
		}
	}
	return nil
}

func TestHostBatchesAreTheSlotsThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(everyType(), 4, loader.Options{Workers: 2})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
		require.NoError(t, err)
		memory := map[*byte]bool{}
		for range 4 {
			first := 0
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.Nil(t, b.Stream())
				for _, f := range b.Fields() {
					if f.Name == "empty" {
						require.Equal(t, []int{b.Len(), 0, 3}, f.Shape)
						require.Empty(t, f.Bytes)
						continue
					}
					memory[&f.Bytes[0]] = true
					require.Equal(t, []int{b.Len(), 3}, f.Shape)
					require.Len(t, f.Bytes, b.Len()*3*f.DType.Size())
					require.Equal(t, byte(first)&1, f.Bytes[0])
				}
				first += b.Len()
			}
			require.Equal(t, 10, first)
		}
		if !invariants.Enabled { // where every batch has memory of its own
			require.LessOrEqual(t, len(memory), 2*len(everyType().types), "a slot's for each field")
		}
		require.NoError(t, pf.Close())
	})
}

func TestHostLeasesReturnToTheProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(canary{n: 20, width: 6}, 2, loader.Options{Workers: 2})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
		require.NoError(t, err)
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		var held []prefetch.Batch
		for range 3 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			held = append(held, b)
		}
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrLeases)
		for i, b := range held {
			index := binary.LittleEndian.Uint64(b.Field("index").Bytes)
			require.EqualValues(t, 2*i, index)
		}
		held[0].Release()
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 6, binary.LittleEndian.Uint64(b.Field("index").Bytes))
		var left *prefetch.CloseError
		require.ErrorAs(t, pf.Close(), &left)
		require.Len(t, left.Leased, 3)
		require.EqualValues(t, 2, binary.LittleEndian.Uint64(held[1].Field("index").Bytes), "a lease outlives Close")
		for _, b := range []prefetch.Batch{held[1], held[2], b} {
			b.Release()
		}
		require.NoError(t, rd.Close())
	})
}

// A host consumer's wait ends like any other, with the cause.
func TestACancelledHostWaitGivesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 8, width: 4, read: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		ld, err := loader.New(data, 2, plain)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		go func() {
			synctest.Wait()
			cancel(enough)
		}()
		for _, err := range pf.Batches(ctx) {
			require.ErrorIs(t, err, enough)
		}
		require.NoError(t, pf.Close())
	})
}
