package prefetch_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// handle is a sample whose Close may hang.
type handle struct {
	n    int
	hang <-chan struct{} // nil if it does not
}

func (h *handle) Close() error {
	if h.hang != nil {
		<-h.hang
	}
	return nil
}

// A sample's Close that does not return holds up no batch, and neither the end of a
// range nor Close for more than the grace.
func TestACloseOfASampleThatDoesNotReturnIsReported(t *testing.T) {
	fields := []loader.Field{{Name: "n", DType: dtype.Int64}}
	encode := func(_ context.Context, h *handle, row *loader.Row) error {
		return loader.Write(row, "n", int64(h.n))
	}
	for name, c := range map[string]struct {
		stuck int
		once  bool
		o     loader.Options
	}{
		"another rank's":     {stuck: 2, o: loader.Options{Last: loader.Drop, Shard: loader.Shard{Count: 2}}},
		"read ahead":         {stuck: 8},
		"a source of a pass": {stuck: 18, once: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				seq := func(yield func(*handle, error) bool) {
					for n := range 40 {
						h := &handle{n: n}
						if n == c.stuck {
							h.hang = hang
						}
						if !yield(h, nil) {
							return
						}
					}
				}
				it := loader.FromSeqFunc(fields, func(context.Context, loader.Pass) iter.Seq2[*handle, error] { return seq }, encode)
				if c.once {
					it = loader.FromSeq(fields, seq, encode)
				}
				o := c.o
				o.Workers, o.GracePeriod = 1, time.Second
				ld, err := loader.NewIterable(it, 2, o)
				require.NoError(t, err)
				pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 3}})
				require.NoError(t, err)
				r, err := pf.Open(t.Context())
				require.NoError(t, err)
				began := time.Now()
				b, err := r.Next(t.Context())
				require.NoError(t, err)
				b.Release()
				synctest.Wait()
				require.Zero(t, time.Since(began))
				for _, end := range []func() error{r.Close, pf.Close} {
					if err = end(); err != nil {
						break
					}
				}
				require.Equal(t, time.Second, time.Since(began))
				var stuck *loader.StuckError
				require.ErrorAs(t, err, &stuck)
				require.Equal(t, loader.StageClose, stuck.Stage)
				require.Equal(t, c.stuck, stuck.Sample)
				close(hang)
				synctest.Wait()
				require.NoError(t, pf.Close())
			})
		})
	}
}
