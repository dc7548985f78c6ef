//go:build invariants

package pinnedpool_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/pinnedpool"
)

func TestAFreeBufferIsPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 1, slotBytes, pinnedpool.Options{})
		poison := bytes.Repeat([]byte{0xff}, slotBytes)
		b := r.get()
		require.Equal(t, poison, b.Bytes(), "at first")
		clear(b.Bytes())
		r.pool.Put(b)
		require.Equal(t, poison, b.Bytes(), "after Put")
		r.upload(r.get(), 1)
		require.NoError(t, r.pool.Drain(t.Context()))
		require.Equal(t, poison, b.Bytes(), "after its copy")
		r.close()
	})
}

func TestAWriteToAFreeBufferIsReported(t *testing.T) {
	r := newRig(t, cpu.Options{}, 2, slotBytes, pinnedpool.Options{})
	b := r.get()
	kept := b.Bytes()
	r.pool.Put(b)
	kept[5] = 1
	other := r.get()
	_, err := r.pool.Get(t.Context())
	require.Equal(t, &pinnedpool.OverwriteError{Buffer: 0, Offset: 5}, err)
	require.ErrorContains(t, err, "somebody kept its memory")
	require.Equal(t, 1, r.pool.Stats().Quarantined, "who wrote may do so again")
	r.pool.Put(other)
	other.Bytes()[7] = 1
	var overwritten *pinnedpool.OverwriteError
	require.ErrorAs(t, r.pool.Close(t.Context()), &overwritten, "Close looks too")
	require.EqualValues(t, 7, overwritten.Offset)
}

// The write is a function on the copies' stream, which the race detector finds in
// order; a producer's would be a data race besides.
func TestAWriteToABufferInFlightIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 1, slotBytes, pinnedpool.Options{})
		b := r.get()
		kept := b.Bytes()
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Millisecond)))
		require.NoError(t, r.copies.HostFunc(func() { kept[9]++ }))
		require.NoError(t, r.copies.Record(b.Copied()))
		r.pool.PutAfter(b)
		_, err := r.pool.Get(t.Context())
		require.Equal(t, &pinnedpool.OverwriteError{Buffer: 0, Offset: 9, InFlight: true}, err)
		r.pool.Recover()
		r.pool.Put(r.get())
		r.close()
	})
}

// Each of those in flight together is looked at, not only the first.
func TestAWriteToAnyOfAGroupIsReported(t *testing.T) {
	for victim := range 3 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 3, slotBytes, pinnedpool.Options{Together: 3})
			group := []*pinnedpool.Buffer{r.get(), r.get(), r.get()}
			kept := group[victim].Bytes()
			require.NoError(t, r.copies.Launch(cpu.Busy(time.Millisecond)))
			require.NoError(t, r.copies.HostFunc(func() { kept[9]++ }))
			require.NoError(t, r.copies.Record(group[2].Copied()))
			r.pool.PutAfter(group...)
			require.Equal(t, &pinnedpool.OverwriteError{Buffer: victim, Offset: 9, InFlight: true}, r.pool.Drain(t.Context()))
			require.Equal(t, 3, r.pool.Doubtful(), "the copies of all may have read what was written")
			r.pool.Recover()
			start := time.Now()
			require.NoError(t, r.copies.Launch(cpu.Busy(time.Millisecond)))
			r.uploadTogether(r.get(), r.get(), r.get())
			require.NoError(t, r.pool.Drain(t.Context()))
			require.Equal(t, time.Millisecond, time.Since(start), "the group's next event is another one")
			r.close()
		})
	}
}
