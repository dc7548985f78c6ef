package pinnedpool_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/pinnedpool"
)

// A pool behaves like a few lines of bookkeeping, whatever is done to it: every
// buffer is in one place, comes back in the order of the copies, and is handed out
// only when its own copy is done. The device reports a refill that is too soon.
func TestAPoolIsItsBookkeeping(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 5).Draw(rt, "slots")
		took := time.Duration(rapid.IntRange(0, 3).Draw(rt, "copy")) * time.Millisecond
		moves := rapid.SliceOfN(rapid.SampledFrom([]string{"get", "get", "put", "upload", "upload", "together", "quarantine", "readmit", "doubt", "recover", "time", "drain"}), 0, 60).Draw(rt, "moves")
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slow(took), slots, slotBytes, pinnedpool.Options{})
			var held, quarantined []*pinnedpool.Buffer
			var done []time.Time // of the copies in flight, in order
			streamFree := time.Now()
			doubtful := 0
			settle := func() {
				synctest.Wait()
				for len(done) > 0 && !done[0].After(time.Now()) {
					done = done[1:]
				}
			}
			// sent are buffers that are free when the last of their copies is done.
			sent := func(buffers int) {
				if now := time.Now(); streamFree.Before(now) {
					streamFree = now
				}
				streamFree = streamFree.Add(time.Duration(buffers) * took)
				for range buffers {
					done = append(done, streamFree)
				}
			}
			free := func() int { return slots - len(held) - len(done) - len(quarantined) - doubtful }
			for i, move := range moves {
				settle()
				switch move {
				case "get":
					if free() == 0 {
						continue
					}
					held = append(held, r.get())
				case "time":
					time.Sleep(time.Millisecond)
				case "drain":
					require.NoError(t, r.pool.Drain(t.Context()))
				case "readmit":
					if len(quarantined) > 0 {
						require.True(t, r.pool.Readmit(quarantined[0]))
						held, quarantined = append(held, quarantined[0]), quarantined[1:]
					}
				case "recover":
					if doubtful > 0 {
						require.NoError(t, r.copies.Synchronize(t.Context()))
						settle()
					}
					r.pool.Recover()
					doubtful = 0
				default:
					if len(held) == 0 {
						continue
					}
					if n := len(held); move == "together" {
						r.uploadTogether(held...)
						held = nil
						sent(n)
						break
					}
					b := held[0]
					held = held[1:]
					switch move {
					case "put":
						r.pool.Put(b)
					case "upload":
						r.upload(b, byte(i))
						sent(1)
					case "doubt":
						require.NoError(t, r.copies.CopyH2D(r.target.View(), b.Bytes()))
						r.pool.Doubt(b)
						doubtful++
						sent(1)
						done = done[:len(done)-1] // the copy takes its time, but nobody waits for it
					case "quarantine":
						r.pool.Quarantine(b)
						quarantined = append(quarantined, b)
					}
				}
				settle()
				s := r.pool.Stats()
				require.Equal(t, len(quarantined), s.Quarantined)
				require.Equal(t, doubtful, r.pool.Doubtful())
				require.Equal(t, len(done), s.InFlight)
				require.Equal(t, free(), s.Free)
				require.EqualValues(t, slots*slotBytes, s.Bytes)
			}
			for _, b := range held {
				r.pool.Put(b)
			}
			err := r.pool.Close(t.Context())
			if len(quarantined)+doubtful > 0 {
				require.ErrorContains(t, err, "are not back")
				return
			}
			require.NoError(t, err)
			r.nothingLeft()
		})
	})
}

// Producers, an uploader and whoever reads the counters, all at once, for the race
// detector; each buffer has one holder at a time.
func TestManyGoroutinesShareAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const producers, laps, slots = 8, 50, 3
		r := newRig(t, slow(100*time.Microsecond), slots, slotBytes, pinnedpool.Options{})
		filled := make(chan *pinnedpool.Buffer)
		var producing sync.WaitGroup
		for p := range producers {
			producing.Go(func() {
				for range laps {
					b, err := r.pool.Get(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					for i := range b.Bytes() {
						b.Bytes()[i] = byte(p)
					}
					if p%2 == 0 {
						r.pool.Put(b)
						continue
					}
					filled <- b
				}
			})
		}
		go func() { // ends when the producers have
			producing.Wait()
			close(filled)
		}()
		for b := range filled {
			for _, is := range b.Bytes() {
				require.Equal(t, b.Bytes()[0], is, "two producers had it")
			}
			r.upload(b, b.Bytes()[0])
			s := r.pool.Stats()
			require.LessOrEqual(t, s.Free+s.InFlight, slots)
		}
		require.NoError(t, r.pool.Drain(t.Context()))
		require.EqualValues(t, producers*laps, r.pool.Stats().Gets)
		require.Equal(t, slots, r.pool.Stats().Free)
		r.close()
	})
}
