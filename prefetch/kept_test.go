package prefetch_test

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// hosts are the kinds of host pipeline.
var hosts = forms[2:]

// What a host consumer keeps may be read after Close: it is only undefined.
func TestHostMemoryOutlivesClose(t *testing.T) {
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 1 << 10}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
				var kept [][]byte
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					kept = append(kept, b.Field("bytes").Bytes)
				}
				require.NoError(t, pf.Close())
				for _, mem := range kept {
					require.Len(t, bytes.Clone(mem), 4<<10)
					for i := range mem {
						mem[i]++
					}
				}
			})
		})
	}
}

// A slot that is leased when Close is called is its holder's as before, and so is what
// it keeps of it behind the Release.
func TestALeasedHostSlotOutlivesClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pf := hosts[0].open(t, canary{n: 40, width: 64}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
		rd, err := pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		var left *prefetch.CloseError
		require.ErrorAs(t, pf.Close(), &left)
		want := make([]byte, 64)
		fill(want, 0)
		mem := b.Field("bytes").Bytes
		require.Equal(t, want, mem[:64])
		b.Release()
		require.NotPanics(t, func() { _ = bytes.Clone(mem) })
		require.NoError(t, rd.Close())
	})
}

// In a build that checks, what was kept of a batch never shows another's numbers.
func TestKeptMemoryIsPoison(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs -tags invariants")
	}
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 40, width: 6}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
				poison := bytes.Repeat([]byte{0xff}, 24)
				var kept [][]byte
				for range 2 {
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						for _, mem := range kept {
							require.Equal(t, poison, mem)
						}
						kept = append(kept, b.Field("bytes").Bytes)
					}
				}
				kept[19][7] = 9
				var failed error
				for _, err := range pf.Batches(t.Context()) {
					if failed = err; err != nil {
						break
					}
				}
				var found *pinnedpool.OverwriteError
				require.ErrorAs(t, failed, &found)
				require.ErrorContains(t, failed, `field "bytes", row 1`)
				require.NoError(t, pf.Close())
			})
		})
	}
}

func TestSeveralGoroutinesReadABatch(t *testing.T) {
	for _, form := range hosts {
		t.Run(form.name, func(t *testing.T) {
			pf := form.open(t, canary{n: 50, width: 6}, 4, loader.Options{Workers: 2}, prefetch.Options{}, 0)
			want := make([]byte, 6)
			for b, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				fill(want, 4*b.Position().Batch)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						if f := b.Field("bytes"); f.Shape[0] != b.Len() || !bytes.Equal(want, f.Bytes[:6]) {
							t.Error(f)
						}
						c, err := b.Clone()
						if err != nil || !bytes.Equal(c.Field("bytes").Bytes, b.Field("bytes").Bytes) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			require.NoError(t, pf.Close())
		})
	}
}
