package prefetch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// hostRows requires that a host batch's rows are the canaries in order.
func hostRows(t *testing.T, data canary, b prefetch.Batch) {
	t.Helper()
	index, all, want := b.Field("index").Bytes, b.Field("bytes").Bytes, make([]byte, data.width)
	for row := range b.Len() {
		sample := b.Position().First + int64(row)
		require.Equal(t, sample, int64(binary.LittleEndian.Uint64(index[8*row:])), "%+v row %d", b.Position(), row)
		fill(want, int(sample))
		require.True(t, bytes.Equal(want, all[row*data.width:][:data.width]), "%+v row %d", b.Position(), row)
	}
}

// A sample of a stream's remainder, which Drop leaves out, fails before or behind the
// moment when the stream's end is known and the next epoch's batches are opened.
func TestAFailureInAStreamsDroppedRemainderIsNoFailure(t *testing.T) {
	const epochs, samples, batch = 20, 10, 4
	unreadable := errors.New("unreadable")
	for _, late := range []bool{false, true} {
		for _, per := range []int{1, 3} {
			t.Run(fmt.Sprintf("late=%v/batchespercopy=%d", late, per), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: samples, width: 8, read: func(_ context.Context, i int) error {
						if i < 8 {
							return nil
						}
						if late {
							time.Sleep(time.Second)
						}
						return unreadable
					}}
					lo := loader.Options{Workers: 2, Last: loader.Drop, Epochs: epochs}
					po := prefetch.Options{BatchesPerCopy: per, Memory: prefetch.Memory{HostSlots: 4 * per}}
					r := newRig(t, data, adversarial(time.Millisecond), batch, lo, po)
					r.overStream(nil, batch, lo, po)
					for range epochs {
						all := r.until(1<<30, "break")
						require.Len(t, all, 2)
						require.NoError(t, r.dev.Synchronize(t.Context()))
						for _, got := range all {
							require.NoError(t, r.verify(got))
						}
					}
					r.close()

					ld, err := loader.NewIterable(stream(data, nil), batch, lo)
					require.NoError(t, err)
					pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 4}})
					require.NoError(t, err)
					n := 0
					for pf.Epoch() < epochs {
						for b, err := range pf.Batches(t.Context()) {
							require.NoError(t, err)
							hostRows(t, data, b)
							n++
						}
					}
					require.Equal(t, 2*epochs, n)
					require.NoError(t, pf.Close())
				})
			})
		}
	}
}

// meddler is a context whose Err does something first, once.
type meddler struct {
	context.Context
	meanwhile func()
}

func (m *meddler) Err() error {
	if f := m.meanwhile; f != nil {
		m.meanwhile = nil
		f()
	}
	return m.Context.Err()
}

// Close comes while Next is on its way to a batch. The workers give the batch up, and
// it must not be taken for one that was read, nor count as delivered.
func TestABatchThatCloseLeftUnreadIsNotDelivered(t *testing.T) {
	for looks := range 3 {
		t.Run(fmt.Sprintf("looks=%d", looks), func(t *testing.T) {
			begun, gone := make(chan struct{}), make(chan struct{})
			data := canary{n: 64, width: 8, read: func(ctx context.Context, i int) error {
				if i >= 4 {
					close(begun)
					<-ctx.Done()
					close(gone)
					return ctx.Err()
				}
				return nil
			}}
			pf := hostOf(t, data, 4, loader.Options{Workers: 1}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
			rd, err := pf.Open(t.Context())
			require.NoError(t, err)
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			hostRows(t, data, b)
			b.Release()
			<-begun
			var closing sync.WaitGroup
			caller := &meddler{Context: t.Context()}
			meddle := func() {
				closing.Go(func() { _ = pf.Close() })
				<-gone
				for range 100 { // the worker gives its share up soon, and nothing tells when
					runtime.Gosched()
				}
			}
			for range looks {
				next := meddle
				meddle = func() { caller.meanwhile = next }
			}
			caller.meanwhile = meddle
			end := time.AfterFunc(10*time.Second, func() { _ = pf.Close() })
			b, err = rd.Next(caller)
			if err == nil {
				hostRows(t, data, b)
			}
			require.ErrorIs(t, err, prefetch.ErrClosed)
			require.Equal(t, int64(4), pf.State().Position)
			end.Stop()
			closing.Wait()
		})
	}
}

// Whoever closes the pipeline, and whenever: what was delivered before has been read.
func TestCloseAtAnyMomentDeliversNothingUnread(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			data := canary{n: 1 << 16, width: 32}
			for i := range 60 {
				pf := form.open(t, data, 4, loader.Options{Workers: 3}, prefetch.Options{}, 0)
				var closing sync.WaitGroup
				closing.Go(func() {
					for range i * 20 {
						runtime.Gosched()
					}
					_ = pf.Close()
				})
				n := int64(0)
				for b, err := range pf.Batches(t.Context()) {
					if err != nil {
						require.ErrorIs(t, err, prefetch.ErrClosed)
						break
					}
					require.Equal(t, 4*n, b.Position().First)
					if n++; b.Stream() == nil {
						hostRows(t, data, b)
					}
				}
				closing.Wait()
				require.Equal(t, 4*n, pf.State().Position)
			}
		})
	}
}
