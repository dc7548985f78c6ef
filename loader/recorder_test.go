package loader_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
)

// diary keeps what it is told of workers.
type diary struct {
	journal.Recorder
	mu      sync.Mutex
	roles   map[journal.Role]int
	reading map[int]int // by worker
	reads   []journal.Read
}

func (d *diary) Goroutine(role journal.Role, _ int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.roles[role]++
}

func (d *diary) Reading(worker int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading[worker]++
}

func (d *diary) Read(r journal.Read) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads = append(d.reads, r)
	d.reading[r.Worker]--
}

// A recorder is told of each sample once, by who read it, and how long that took.
func TestARecorderIsToldOfEachSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, batch = 40, 8
		data := numbers{n: n, before: func(_ context.Context, i int, _ *loader.Row) error {
			time.Sleep(time.Duration(1+i) * time.Millisecond)
			return nil
		}}
		ld, err := loader.New(data, batch, loader.Options{Workers: 3, Epochs: 2, Shuffle: true})
		require.NoError(t, err)
		claim, err := ld.Claim()
		require.NoError(t, err)
		d := &diary{roles: map[journal.Role]int{}, reading: map[int]int{}}
		mem := heap(t, ld, 3)
		run := claim.Start(t.Context(), loader.Cursor{}, mem, d)
		for err == nil || errors.Is(err, loader.ErrEpochEnd) {
			var f loader.Filled
			if f, err = run.Next(t.Context()); err == nil {
				mem.Put(f.Slot)
			}
		}
		require.ErrorIs(t, err, loader.ErrEnd)
		require.NoError(t, run.Close())

		require.Equal(t, map[journal.Role]int{journal.Dispatcher: 1, journal.Worker: 3}, d.roles)
		require.Equal(t, map[int]int{0: 0, 1: 0, 2: 0}, d.reading)
		seen := make([]int, 2*n)
		var busy time.Duration
		for _, r := range d.reads {
			order := ld.Order(r.Epoch)
			require.Equal(t, order.At(r.Position), r.Sample)
			require.Equal(t, r.Batch, int(r.Position)/batch)
			took := time.Duration(0)
			for i := range r.Samples {
				seen[r.Epoch*n+int(r.Position)+i]++
				took += time.Duration(1+order.At(r.Position+int64(i))) * time.Millisecond
			}
			require.Equal(t, took, r.Took)
			busy += took
		}
		for _, times := range seen {
			require.Equal(t, 1, times)
		}
		var counted time.Duration
		for _, b := range run.Stats().Busy {
			counted += b
		}
		require.Equal(t, counted, busy)
	})
}

// Samples that fail are told of by nobody, and those before them in their run neither.
func TestARecorderIsNotToldOfFailures(t *testing.T) {
	data := numbers{n: 4, before: func(_ context.Context, i int, _ *loader.Row) error {
		if i == 1 {
			return errors.New("broken")
		}
		return nil
	}}
	ld, err := loader.New(data, 4, loader.Options{Workers: 1, Epochs: 1})
	require.NoError(t, err)
	claim, err := ld.Claim()
	require.NoError(t, err)
	d := &diary{roles: map[journal.Role]int{}, reading: map[int]int{}}
	run := claim.Start(t.Context(), loader.Cursor{}, heap(t, ld, 1), d)
	_, err = run.Next(t.Context())
	require.ErrorContains(t, err, "broken")
	require.NoError(t, run.Close())
	for _, r := range d.reads {
		require.Zero(t, r.Sample, "the first one's run may be over")
	}
}
