package group_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// shop is a pool of canaries on devices of its own.
type shop struct {
	t     *testing.T
	data  canary
	ld    *loader.Loader
	cards []*card
	p     *group.Pool
	takes func(device int, at prefetch.Position) time.Duration // a step's time
	late  bool                                                 // which is known when it begins
}

func newShop(t *testing.T, data canary, models []*cpu.Model, batchSize int, lo loader.Options, po prefetch.Options, takes func(int, prefetch.Position) time.Duration) *shop {
	t.Helper()
	return newShopOn(t, data, newCards(t, models), batchSize, lo, po, takes)
}

func newShopOn(t *testing.T, data canary, cards []*card, batchSize int, lo loader.Options, po prefetch.Options, takes func(int, prefetch.Position) time.Duration) *shop {
	t.Helper()
	s := &shop{t: t, data: data, cards: cards, takes: takes}
	var err error
	s.ld, err = loader.New(data, batchSize, lo)
	require.NoError(t, err)
	s.p, err = group.NewPool(streamsOf(s.cards), s.ld, po)
	require.NoError(t, err)
	return s
}

// speeds are devices each of which takes so long for every step.
func speeds(each ...time.Duration) func(int, prefetch.Position) time.Duration {
	return func(device int, _ prefetch.Position) time.Duration { return each[device] }
}

// work passes a batch on, as the device sees it when it gets there.
func (s *shop) work(i int, b prefetch.Batch, out prefetch.Fields) error {
	at := b.Position()
	if s.late {
		if err := b.Stream().HostFunc(func() { time.Sleep(s.takes(i, at)) }); err != nil {
			return err
		}
	} else if d := s.takes(i, at); d > 0 {
		if err := s.cards[i].spin(b.Stream(), d); err != nil {
			return err
		}
	}
	for _, name := range []string{"index", "bytes"} {
		if err := b.Stream().CopyD2D(out.Field(name).View, b.Field(name).View); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) output() prefetch.Output { return prefetch.Output{Fields: s.data.Fields()} }

// check requires that a result is whole, and that of its position.
func (s *shop) check(r group.Result) {
	s.t.Helper()
	order, at := s.ld.Order(r.Position().Epoch), r.Position().First
	index, bytes := r.Field("index").Bytes, r.Field("bytes").Bytes
	want := make([]byte, s.data.width)
	for row := range r.Len() {
		sample := order.At((at + int64(row)) % int64(s.data.n))
		fill(want, sample)
		require.EqualValues(s.t, sample, binary.LittleEndian.Uint64(index[8*row:]))
		require.Equal(s.t, want, bytes[row*s.data.width:][:s.data.width])
	}
}

func (s *shop) close() {
	s.t.Helper()
	require.NoError(s.t, s.p.Close())
	for _, c := range s.cards {
		c.close(s.t)
	}
}

// However many devices there are, how fast each is, and how often the range is left:
// every result comes once, whole, and in order if that is asked for.
func TestEveryResultOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		devices := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(rt, "devices")
		batchSize := rapid.IntRange(1, 4).Draw(rt, "batch")
		lo := loader.Options{
			Shuffle: true, Seed: rapid.Uint64().Draw(rt, "seed"), Workers: rapid.IntRange(1, 8).Draw(rt, "workers"),
			Epochs: rapid.IntRange(1, 2).Draw(rt, "epochs"),
			Last:   rapid.SampledFrom([]loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad}).Draw(rt, "last"),
		}
		po := prefetch.Options{
			Depth: rapid.IntRange(1, 4).Draw(rt, "depth"), BatchesPerCopy: rapid.IntRange(1, 3).Draw(rt, "batchesPerCopy"),
			Streams: prefetch.Streams{Compute: rapid.IntRange(1, 2).Draw(rt, "streams")},
			Memory:  prefetch.Memory{HostSlots: rapid.IntRange(1, 4).Draw(rt, "hostSlots")},
		}
		var models []*cpu.Model
		var each []time.Duration
		for i := range devices {
			models = append(models, copies(time.Duration(rapid.IntRange(0, 4).Draw(rt, fmt.Sprint("copy ", i)))*ms))
			each = append(each, time.Duration(rapid.IntRange(0, 20).Draw(rt, fmt.Sprint("step ", i)))*ms)
		}
		n := batchSize + rapid.IntRange(0, 30*batchSize).Draw(rt, "more samples")
		asFinished := rapid.Bool().Draw(rt, "as finished")
		slots := rapid.IntRange(0, 3).Draw(rt, "slots")
		stops := rapid.SliceOfN(rapid.IntRange(1, 9), 0, 4).Draw(rt, "stops")
		ways := rapid.SliceOfN(rapid.SampledFrom([]string{"break", "panic", "cancel"}), 5, 5).Draw(rt, "ways")
		synctest.Test(t, func(t *testing.T) {
			s := newShop(t, canary{n: n, width: 5}, models, batchSize, lo, po, speeds(each...))
			out := s.output()
			out.AsFinished, out.Slots = asFinished, slots
			per, _ := s.ld.Batches()
			seen := make([]int, per*lo.Epochs)
			for i := 0; s.p.Epoch() < lo.Epochs; i++ {
				stop, way := 1<<30, "break"
				if i < len(stops) {
					stop, way = stops[i], ways[i]
				}
				epoch, first := s.p.Epoch(), int(s.p.State().Position)/batchSize
				got := s.until(out, stop, way)
				for k, batch := range got {
					if !asFinished {
						require.Equal(t, first+k, batch)
					}
					seen[epoch*per+batch]++
				}
				if asFinished { // the ones beyond the place come again
					place := s.p.Epoch()*per + int(s.p.State().Position)/batchSize
					for at := range seen {
						require.Equal(t, at < place, seen[at] > 0 && at < place, "batch %d, and the place is %d", at, place)
						if at >= place {
							seen[at] = 0
						}
					}
				}
			}
			for at, times := range seen {
				require.Equal(t, 1, times, "batch %d", at)
			}
			s.close()
		})
	})
}

// until takes at most stop results, then leaves the range in the given way, and returns the
// numbers of the batches.
func (s *shop) until(out prefetch.Output, stop int, way string) (batches []int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	defer func() {
		if v := recover(); v != nil && v != "stop" {
			panic(v)
		}
	}()
	for r, err := range s.p.Map(ctx, out, s.work) {
		if way == "cancel" && err != nil {
			require.ErrorIs(s.t, err, context.Canceled)
			return batches
		}
		require.NoError(s.t, err)
		s.check(r)
		batches = append(batches, r.Position().Batch)
		if len(batches) < stop {
			continue
		}
		switch way {
		case "panic":
			panic("stop")
		case "cancel":
			cancel()
		default:
			return batches
		}
	}
	return batches
}

// results runs one epoch and returns how long it took, and how many batches each device did.
func (s *shop) results(out prefetch.Output) (took time.Duration, by []int) {
	s.t.Helper()
	by = make([]int, len(s.cards))
	start, next := time.Now(), 0
	for r, err := range s.p.Map(s.t.Context(), out, s.work) {
		require.NoError(s.t, err)
		s.check(r)
		if !out.AsFinished {
			require.Equal(s.t, next, r.Position().Batch)
		}
		next++
		by[r.Device()]++
	}
	per, _ := s.ld.Batches()
	require.Equal(s.t, per, next)
	return time.Since(start), by
}

// Devices of unequal speed: halves take as long as the slower one for its half, shares what
// both need together.
func TestSharesBeatHalves(t *testing.T) {
	const steps = 300
	for name, c := range map[string]struct {
		each []time.Duration
		want []int // the shares
	}{
		"equal":  {[]time.Duration{10 * ms, 10 * ms}, []int{150, 150}},
		"1:2":    {[]time.Duration{10 * ms, 20 * ms}, []int{200, 100}},
		"1:10":   {[]time.Duration{10 * ms, 100 * ms}, []int{273, 27}},
		"1:2:5":  {[]time.Duration{10 * ms, 20 * ms, 50 * ms}, []int{176, 88, 35}},
		"8 of 3": {[]time.Duration{10 * ms, 10 * ms, 20 * ms, 20 * ms, 20 * ms, 40 * ms, 40 * ms, 40 * ms}, nil},
	} {
		for _, asFinished := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/asFinished=%v", name, asFinished), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newShop(t, canary{n: steps, width: 5}, repeat(copies(ms), len(c.each)), 1, loader.Options{Workers: 8}, prefetch.Options{}, speeds(c.each...))
					out := s.output()
					out.AsFinished = asFinished
					took, by := s.results(out)
					rate, slowest := 0.0, time.Duration(0)
					for _, d := range c.each {
						rate += 1 / d.Seconds()
						slowest = max(slowest, d)
					}
					ideal := time.Duration(steps / rate * 1e9)
					t.Logf("%v, ideal %v, halves %v; %v", took, ideal, time.Duration(steps/len(c.each))*slowest, by)
					require.GreaterOrEqual(t, took, ideal)
					beyond := slowest + 2*ms
					if !asFinished { // the first results of the slowest are waited for before it is known for that
						beyond += slowest
					}
					require.LessOrEqual(t, took, ideal+beyond)
					for i, want := range c.want {
						require.InDelta(t, want, by[i], 2)
					}
					s.close()
				})
			})
		}
	}
}

// Times that vary by a fifth, devices that change places in the middle, one that falls to a
// tenth of its speed and recovers: 20 batches after each change the devices together are as
// fast as they can be, within a twentieth, and none is left out. In order the results wait
// for what a device has in hand when it falls, and as a whole take a seventh longer at most.
func TestSharesFollowTheDevices(t *testing.T) {
	const steps = 1000
	// The time of a step of a device, with so many results delivered.
	plan := func(device, delivered int) time.Duration {
		first, second := 10*ms, 20*ms
		if delivered >= 300 {
			first, second = second, first
		}
		if delivered >= 600 && delivered < 700 {
			first *= 10
		}
		return []time.Duration{first, second}[device]
	}
	for seed := range uint64(5) {
		for _, asFinished := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed=%d/asFinished=%v", seed, asFinished), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var delivered atomic.Int32
					takes := func(device int, at prefetch.Position) time.Duration {
						noise := rand.New(rand.NewPCG(seed, uint64(2*at.Batch+device)))
						return time.Duration(float64(plan(device, int(delivered.Load()))) * (0.8 + 0.4*noise.Float64()))
					}
					s := newShop(t, canary{n: steps, width: 5}, repeat(copies(ms), 2), 1, loader.Options{Workers: 8}, prefetch.Options{}, takes)
					s.late = true
					out := s.output()
					out.AsFinished = asFinished
					var at []time.Duration
					var by []int
					start := time.Now()
					for r, err := range s.p.Map(t.Context(), out, s.work) {
						require.NoError(t, err)
						s.check(r)
						delivered.Add(1)
						at, by = append(at, time.Since(start)), append(by, r.Device())
					}
					require.Len(t, at, steps)
					all := 0.0
					for _, part := range [][2]int{{0, 300}, {300, 600}, {600, 700}, {700, 1000}} {
						rate, count := 0.0, [2]int{}
						for d := range 2 {
							rate += 1 / plan(d, part[0]).Seconds()
						}
						for _, d := range by[part[0]:part[1]] {
							count[d]++
						}
						require.NotZero(t, count[0])
						require.NotZero(t, count[1])
						all += float64(part[1]-part[0]) / rate
						settled := part[0] + 20
						ideal := float64(part[1]-settled-1) / rate
						took := (at[part[1]-1] - at[settled]).Seconds()
						t.Logf("batches %v: %.3f of the ideal, shares %v", part, took/ideal, count)
						if asFinished {
							require.Less(t, took, 1.05*ideal, "batches %v", part)
						}
					}
					t.Logf("all: %.3f of the ideal", at[steps-1].Seconds()/all)
					require.Less(t, at[steps-1].Seconds(), 1.15*all)
					s.close()
				})
			})
		}
	}
}
