package prefetch_test

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A host consumer whose context ended while the transform was at work has not taken the
// batch: it is the next one, or is thrown away with what is ahead, and its memory serves
// again.
func TestAHostConsumerGivesUpWaitingForTheTransform(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			data := canary{n: 16, width: 8}
			ld, err := loader.New(data, 2, loader.Options{Workers: 1, Epochs: 1})
			require.NoError(t, err)
			apply := passOn(cpuSpin, 0, data)
			pass := &prefetch.Transform{Out: apply.Out, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
				if in.Position().Batch == 2 {
					if err := s.Launch(cpu.Busy(10 * time.Second)); err != nil {
						return err
					}
				}
				return apply.Apply(s, out, in)
			}}
			pf, err := prefetch.NewHost(ld, prefetch.Options{Depth: 1, Transform: pass})
			require.NoError(t, err)
			rd, err := pf.Open(t.Context())
			require.NoError(t, err)
			next := func(want int) {
				t.Helper()
				b, err := rd.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, b.Position().Batch)
				require.EqualValues(t, 2*want, binary.LittleEndian.Uint64(b.Field("index").Bytes))
				b.Release()
			}
			next(0)
			next(1)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err = rd.Next(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				cancel()
			}
			require.Equal(t, int64(4), pf.State().Position)
			from := 2
			if away {
				require.NoError(t, rd.Close())
				from = 5
				require.NoError(t, pf.Seek(0, 10))
				rd, err = pf.Open(t.Context())
				require.NoError(t, err)
			}
			for i := from; i < 8; i++ {
				next(i)
			}
			_, err = rd.Next(t.Context())
			require.ErrorIs(t, err, prefetch.ErrEpochEnd)
			require.NoError(t, rd.Close())
			require.NoError(t, pf.Close())
		})
	}
}

// A Transform that says what it takes is made for a loader that fills just that.
func TestATransformTakesWhatTheLoaderFills(t *testing.T) {
	data := canary{n: 4, width: 8}
	ld, err := loader.New(data, 2, loader.Options{})
	require.NoError(t, err)
	index, bytes := data.Fields()[0], data.Fields()[1]
	wider := loader.Field{Name: "bytes", DType: dtype.Uint8, Shape: []int{9}}
	signed := loader.Field{Name: "bytes", DType: dtype.Int8, Shape: []int{8}}
	other := loader.Field{Name: "other", DType: dtype.Uint8}
	for _, c := range []struct {
		in   []loader.Field
		says []string
	}{
		{in: nil},
		{in: []loader.Field{index, bytes}},
		{in: []loader.Field{bytes, index}},
		{in: []loader.Field{index, wider}, says: []string{"the loader fills bytes uint8[8]"}},
		{in: []loader.Field{index, signed}, says: []string{"the loader fills bytes uint8[8]"}},
		{in: []loader.Field{index}, says: []string{`has none of that name`}},
		{in: []loader.Field{index, bytes, other}, says: []string{`has none of that name`}},
		{in: []loader.Field{other, signed}, says: []string{"index", "bytes", "other"}},
	} {
		pass := passOn(cpuSpin, 0, data)
		pass.In = c.in
		pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: pass})
		if c.says == nil {
			require.NoError(t, err)
			require.NoError(t, pf.Close())
			continue
		}
		t.Log(err)
		require.Error(t, err)
		for _, word := range c.says {
			require.ErrorContains(t, err, word)
		}
	}
}
