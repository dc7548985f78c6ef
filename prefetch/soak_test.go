package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// defaultSoak is how long the soak lasts where LEAT_SOAK states no duration.
const defaultSoak = time.Second

// TestSoakRandomPipelines runs pairs of random pipelines side by side on one unkind
// device, in real time, for as long as LEAT_SOAK says. LEAT_SOAK_SEED repeats a run
// as far as the goroutines' timing allows.
func TestSoakRandomPipelines(t *testing.T) {
	duration, seed := defaultSoak, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv("LEAT_SOAK"); text != "" {
		duration, err = time.ParseDuration(text)
		require.NoError(t, err, "LEAT_SOAK")
	}
	if text := os.Getenv("LEAT_SOAK_SEED"); text != "" {
		_, err = fmt.Sscan(text, &seed)
		require.NoError(t, err, "LEAT_SOAK_SEED")
	}
	before := runtime.NumGoroutine()
	var total soaked
	start := time.Now()
	for round := uint64(0); time.Since(start) < duration && !t.Failed(); round++ {
		total.add(soakRound(t, seed, round))
	}
	t.Logf("seed %d: %+v", seed, total)
	require.NotZero(t, total.Batches)
	// Samples that hang come back, and the runtime counts a goroutine a little longer
	// than it runs.
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left behind:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// soaked counts what a soak has seen.
type soaked struct{ Pipelines, Turns, Batches, Faults, Stuck, Leases int }

func (s *soaked) add(o soaked) {
	s.Pipelines += o.Pipelines
	s.Turns += o.Turns
	s.Batches += o.Batches
	s.Faults += o.Faults
	s.Stuck += o.Stuck
	s.Leases += o.Leases
}

// soakRound is one device and two pipelines on it, each on a goroutine of its own.
func soakRound(t *testing.T, seed, round uint64) (seen soaked) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, round))
	co := cpu.Options{Adversary: &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true,
		Seed: dice.Uint64(), Delay: time.Duration(dice.IntN(200)) * time.Microsecond}}
	if dice.IntN(3) == 0 {
		co.Model = &cpu.Model{ComputeEngines: 1 + dice.IntN(3), H2D: cpu.Link{Latency: time.Duration(dice.IntN(200)) * time.Microsecond}}
	}
	plain, err := cpu.New(co)
	require.NoError(t, err)
	_, drv := watch(t, plain)
	soakers := make([]*soaker, 2)
	failed := make([]error, 2)
	var running sync.WaitGroup
	for i := range soakers {
		s := &soaker{dice: rand.New(rand.NewPCG(dice.Uint64(), dice.Uint64())), open: make(map[int]bool)}
		batchSize, lo, po := s.options()
		s.r = newRigOn(t, drv, cpuSpin, s.data(), batchSize, lo, po)
		s.perEpoch, _ = s.r.ld.Batches()
		soakers[i] = s
	}
	for i, s := range soakers {
		running.Go(func() { failed[i] = s.run() })
	}
	running.Wait()
	for i, s := range soakers {
		require.NoError(t, failed[i], "seed %d round %d pipeline %d: %+v\n%+v", seed, round, i, s.r.ld.Options(), s.r.pf.Plan().Options)
		require.NoError(t, errors.Join(s.r.arena.Close(), s.r.compute.Close()))
		seen.add(s.seen)
	}
	if seen.Stuck == 0 { // else a sample may still write to a slot in quarantine
		require.NoError(t, drv.Close())
	}
	return seen
}

// A soaker drives one pipeline at random and checks whatever it delivers. Where
// something is wrong its methods return an error, other than those it provoked.
type soaker struct {
	dice     *rand.Rand
	r        *rig
	perEpoch int
	seen     soaked

	position int          // batches delivered without a gap, over all epochs
	open     map[int]bool // those behind a gap: results as they finish
	readings []reading
}

var errSoak = errors.New("provoked")

func (s *soaker) options() (batchSize int, lo loader.Options, po prefetch.Options) {
	d := s.dice
	batchSize = 1 + d.IntN(12)
	lo = loader.Options{Shuffle: d.IntN(4) > 0, Seed: d.Uint64(), Epochs: 1 + d.IntN(3),
		Workers: 1 + d.IntN(4), GracePeriod: 2 * time.Millisecond}
	po = prefetch.Options{Depth: 1 + d.IntN(4), BatchesPerCopy: 1 + d.IntN(4), Timing: d.IntN(3) == 0, CloseTimeout: 30 * time.Second, Streams: prefetch.Streams{Compute: 1 + d.IntN(3), RoundRobin: d.IntN(2) == 0}, Memory: prefetch.Memory{HostSlots: 1 + d.IntN(5)}}
	if d.IntN(3) == 0 {
		po.Transform = passOn(cpuSpin, time.Duration(d.IntN(100))*time.Microsecond, canary{width: 1})
	}
	return batchSize, lo, po
}

// data is a dataset of which one sample, once in a while, doesn't heed its context.
func (s *soaker) data() canary {
	d := s.dice
	hangs := int64(-1)
	if d.IntN(4) == 0 {
		hangs = d.Int64N(200)
	}
	data := canary{n: 1 + d.IntN(200), width: 1}
	data.read = func(_ context.Context, index int) error {
		if int64(index) == hangs {
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	}
	return data
}

// run is the pipeline's life: some turns in all ways, then one of the ways to end.
func (s *soaker) run() error {
	s.seen.Pipelines++
	epochs := s.r.ld.Options().Epochs
	for turn := 0; turn < 20 && s.r.pf.Epoch() < epochs; turn++ {
		s.seen.Turns++
		s.arm()
		ways := []func() error{s.rangeOver, s.rangeOver, s.readAhead, s.mapOver}
		err := ways[s.dice.IntN(len(ways))]()
		s.r.tap.Disarm()
		if errors.Is(err, pinnedpool.ErrExhausted) {
			break // every host slot is in quarantine
		}
		if err := errors.Join(unprovoked(err), s.verify()); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
	}
	return s.end()
}

// arm makes a call of the driver fail, in one turn of three.
func (s *soaker) arm() {
	if s.dice.IntN(3) > 0 {
		return
	}
	all := append(slices.Clone(upload), call{op: devicetest.CopyD2H}, call{op: devicetest.Record, event: "fetched"},
		call{op: devicetest.Wait, event: "written"}, call{op: devicetest.CopyD2D}, call{op: devicetest.SynchronizeEvent})
	c := all[s.dice.IntN(len(all))]
	s.r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Nth: int64(1 + s.dice.IntN(20)), Err: errSoak})
	s.seen.Faults++
}

// unprovoked is err, unless the soak itself has brought it about.
func unprovoked(err error) error {
	var stuck *loader.StuckError
	for _, mine := range []error{errSoak, context.Canceled, prefetch.ErrClosed} {
		if errors.Is(err, mine) {
			return nil
		}
	}
	if errors.As(err, &stuck) {
		return nil
	}
	return err
}

// deliver notes that a batch has come.
func (s *soaker) deliver(at prefetch.Position) error {
	s.seen.Batches++
	number := at.Epoch*s.perEpoch + at.Batch
	if number < s.position || s.open[number] {
		return fmt.Errorf("%+v comes twice", at)
	}
	s.open[number] = true
	for s.open[s.position] {
		delete(s.open, s.position)
		s.position++
	}
	return nil
}

// read submits to the batch's stream, or to another, copies of what compute sees.
func (s *soaker) read(b prefetch.Batch) error {
	if err := s.deliver(b.Position()); err != nil {
		return err
	}
	stream := b.Stream()
	if s.dice.IntN(4) == 0 {
		stream = s.r.compute
		if err := b.UsedOn(stream); err != nil {
			return err
		}
	}
	if err := cpuSpin(stream, time.Duration(s.dice.IntN(100))*time.Microsecond); err != nil {
		return err
	}
	got := reading{at: b.Position(), rows: b.Len(), valid: b.Valid()}
	for name, to := range map[string]*[]byte{"index": &got.index, "bytes": &got.bytes} {
		v := b.Field(name).View
		*to = s.r.arena.Bytes()[s.r.used:][:v.Size()]
		s.r.used += v.Size()
		if err := stream.CopyD2H(*to, v); err != nil {
			return err
		}
	}
	s.readings = append(s.readings, got)
	return nil
}

// verify checks what was read since the last time, and that the cursor is where the
// batches delivered end.
func (s *soaker) verify() error {
	errs := []error{s.r.dev.Synchronize(context.Background())}
	for _, got := range s.readings {
		errs = append(errs, s.r.verify(got))
	}
	s.readings, s.r.used = nil, 0
	at := s.r.pf.State()
	batch := int64(s.r.ld.BatchSize())
	if is := at.Epoch*s.perEpoch + int(at.Position/batch); is != s.position {
		errs = append(errs, fmt.Errorf("the cursor is at batch %d, %d were delivered", is, s.position))
	}
	clear(s.open) // what came ahead of a gap comes again
	return errors.Join(errs...)
}

// rangeOver is a range that is left in one of its ways.
func (s *soaker) rangeOver() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer func() {
		if v := recover(); v != nil && v != errSoak {
			panic(v)
		}
	}()
	stop := s.dice.IntN(2 * s.perEpoch)
	for b, err := range s.r.pf.Batches(ctx) {
		if err != nil {
			return err
		}
		if err := s.read(b); err != nil {
			return err
		}
		if stop--; stop > 0 {
			continue
		}
		switch s.dice.IntN(3) {
		case 0:
			return nil
		case 1:
			cancel()
		case 2:
			panic(errSoak)
		}
	}
	return nil
}

// readAhead holds several batches and releases them in any order.
func (s *soaker) readAhead() error {
	rd, err := s.r.pf.Open(context.Background())
	if err != nil {
		return err
	}
	var held []prefetch.Batch
	releaseOne := func() {
		i := s.dice.IntN(len(held))
		held[i].Release()
		held = slices.Delete(held, i, i+1)
	}
	for stop := s.dice.IntN(2 * s.perEpoch); stop > 0; stop-- {
		b, failed := rd.Next(context.Background())
		if errors.Is(failed, prefetch.ErrLeases) {
			s.seen.Leases++
			releaseOne()
			continue
		}
		if errors.Is(failed, prefetch.ErrEpochEnd) {
			break
		}
		if failed == nil {
			held = append(held, b)
			failed = s.read(b)
		}
		if err = failed; err != nil {
			break
		}
		for len(held) > 0 && s.dice.IntN(2) == 0 {
			releaseOne()
		}
	}
	for len(held) > 0 {
		releaseOne()
	}
	return errors.Join(err, rd.Close())
}

// mapOver brings results back.
func (s *soaker) mapOver() error {
	out := prefetch.Output{Fields: s.r.data.Fields(), AsFinished: s.dice.IntN(2) == 0, Slots: s.dice.IntN(4)}
	busy := time.Duration(s.dice.IntN(100)) * time.Microsecond
	echo := func(b prefetch.Batch, to prefetch.Fields) error {
		return errors.Join(cpuSpin(b.Stream(), busy),
			b.Stream().CopyD2D(to.Field("index").View, b.Field("index").View),
			b.Stream().CopyD2D(to.Field("bytes").View, b.Field("bytes").View))
	}
	stop := s.dice.IntN(2 * s.perEpoch)
	for res, err := range s.r.pf.Map(context.Background(), out, echo) {
		if err != nil {
			return err
		}
		if err := errors.Join(s.deliver(res.Position()), s.r.verify(got(res))); err != nil {
			return err
		}
		if stop--; stop <= 0 {
			return nil
		}
	}
	return nil
}

// end closes the pipeline in one of the ways to do so and waits until nothing is
// left of it but the slots in quarantine.
func (s *soaker) end() error {
	var held []prefetch.Batch
	closed := make(chan error, 1)
	switch s.dice.IntN(4) {
	case 0: // while a range is under way
		go func() { closed <- s.r.pf.Close() }()
		if err := s.rangeOver(); unprovoked(err) != nil && !errors.Is(err, pinnedpool.ErrExhausted) {
			return err
		}
	case 1: // with leases out
		if rd, err := s.r.pf.Open(context.Background()); err == nil {
			for range 3 {
				if b, err := rd.Next(context.Background()); err == nil {
					held = append(held, b)
				}
			}
		}
		closed <- s.r.pf.Close()
	case 2: // at once behind a range, while its work is under way
		if err := s.rangeOver(); unprovoked(err) != nil && !errors.Is(err, pinnedpool.ErrExhausted) {
			return err
		}
		fallthrough
	default:
		closed <- s.r.pf.Close()
	}
	err := <-closed
	for _, b := range held {
		if err := s.read(b); err != nil {
			return fmt.Errorf("a lease behind Close: %w", err)
		}
		b.Release()
	}
	if err := s.r.dev.Synchronize(context.Background()); err != nil {
		return err
	}
	for _, got := range s.readings {
		if err := s.r.verify(got); err != nil {
			return err
		}
	}
	quarantined := s.r.pf.Stats().Pool.Quarantined
	s.seen.Stuck += quarantined
	var left *prefetch.CloseError
	if err != nil && unprovoked(err) != nil && !(errors.As(err, &left) && len(left.Leased)+quarantined > 0) {
		return err
	}
	return s.awaitNothing()
}

// awaitNothing waits for the reaper of what was released after Close, which nobody
// outside can join.
func (s *soaker) awaitNothing() error {
	want := s.r.before
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		quarantined := int64(s.r.pf.Stats().Pool.Quarantined) // fewer when a sample has come back
		is := s.r.dev.Usage()
		is.Allocations = want.Allocations
		if quarantined > 0 { // they keep their memory and their events
			is.HostBuffers -= quarantined
			is.Events -= quarantined
			is.PinnedBytes = want.PinnedBytes
		}
		if is == want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("left behind: %+v, want %+v, and %d slots in quarantine", is, want, quarantined)
		}
	}
}
