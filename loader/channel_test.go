package loader_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// However values come, each is delivered once and in order, and none waits for others longer
// than it may.
func TestAChannelDeliversInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const wait = 10 * time.Millisecond
		batchSize := rapid.IntRange(1, 5).Draw(rt, "batch size")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 15), 1, 40).Draw(rt, "pauses, in ms")
		room := rapid.IntRange(0, 3).Draw(rt, "room")
		synctest.Test(t, func(t *testing.T) {
			queue, sent := make(chan int, room), make([]time.Time, len(pauses))
			go func() {
				defer close(queue)
				for i, pause := range pauses {
					time.Sleep(time.Duration(pause) * time.Millisecond)
					sent[i] = time.Now()
					queue <- i
				}
			}()
			l, err := loader.NewIterable(loader.FromSeq(numberFields, loader.Channel(queue, wait), encodeNumber), batchSize, loader.Options{})
			require.NoError(rt, err)
			mem := heap(rt, l, 3)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			next := 0
			for {
				b, err := read(l, run, mem)
				if err == loader.ErrEpochEnd {
					break
				}
				require.NoError(rt, err)
				for _, n := range b.indices {
					require.EqualValues(rt, next, n)
					require.LessOrEqual(rt, time.Since(sent[n]), wait)
					next++
				}
			}
			require.Equal(rt, len(pauses), next)
			require.NoError(rt, run.Close())
			require.NoError(rt, l.Close())
		})
	})
}

// A loop that is left takes no more, and the next one goes on.
func TestAChannelThatIsLeft(t *testing.T) {
	queue := make(chan int, 3)
	for i := range 3 {
		queue <- i
	}
	var got []int
	for len(got) < 3 {
		for v, err := range loader.Channel(queue, time.Hour) {
			require.NoError(t, err)
			got = append(got, v)
			break
		}
	}
	require.Equal(t, []int{0, 1, 2}, got)
	close(queue)
	for _, err := range loader.Channel(queue, 0) {
		t.Fatal("an empty channel gives nothing, and no Flush before a value: ", err)
	}
}

func TestAChannelAllocatesNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts its own allocations")
	}
	queue := make(chan int, 1)
	queue <- 0
	calls := 0
	per := testing.AllocsPerRun(10, func() {
		for _, err := range loader.Channel(queue, 0) {
			if err == nil {
				queue <- 0
			}
			if calls++; calls%1000 == 0 {
				return
			}
		}
	})
	require.Less(t, per, 20.0, "for a thousand values; the iterator and its timer cost a few")
}
