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
		moves := rapid.SliceOfN(rapid.SampledFrom([]string{"get", "get", "put", "upload", "upload", "quarantine", "time", "drain"}), 0, 60).Draw(rt, "moves")
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slow(took), pinnedpool.Options{Slots: slots, SlotBytes: slotBytes})
			var held []*pinnedpool.Buffer
			var done []time.Time // of the copies in flight, in order
			streamFree := time.Now()
			quarantined := 0
			settle := func() {
				synctest.Wait()
				for len(done) > 0 && !done[0].After(time.Now()) {
					done = done[1:]
				}
			}
			for i, move := range moves {
				settle()
				free := slots - len(held) - len(done) - quarantined
				switch move {
				case "get":
					if free == 0 {
						continue
					}
					held = append(held, r.get())
				case "time":
					time.Sleep(time.Millisecond)
				case "drain":
					require.NoError(t, r.pool.Drain(t.Context()))
				default:
					if len(held) == 0 {
						continue
					}
					b := held[0]
					held = held[1:]
					switch move {
					case "put":
						r.pool.Put(b)
					case "upload":
						r.upload(b, byte(i))
						if now := time.Now(); streamFree.Before(now) {
							streamFree = now
						}
						streamFree = streamFree.Add(took)
						done = append(done, streamFree)
					case "quarantine":
						r.pool.Quarantine(b)
						quarantined++
					}
				}
				settle()
				s := r.pool.Stats()
				require.Equal(t, quarantined, s.Quarantined)
				require.Equal(t, len(done), s.InFlight)
				require.Equal(t, slots-len(held)-len(done)-quarantined, s.Free)
				require.EqualValues(t, slots*slotBytes, s.Bytes)
			}
			for _, b := range held {
				r.pool.Put(b)
			}
			err := r.pool.Close(t.Context())
			if quarantined > 0 {
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
		r := newRig(t, slow(100*time.Microsecond), pinnedpool.Options{Slots: slots, SlotBytes: slotBytes})
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
