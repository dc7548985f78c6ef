package prefetch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A tally counts how often each sample is read.
type tally struct {
	mu    sync.Mutex
	total int
	of    []int
}

// costly is a dataset each of whose reads takes a while, and is counted.
func costly(n int, read time.Duration) (canary, *tally) {
	c := &tally{of: make([]int, n)}
	data := costs(n, read)
	wait := data.read
	data.read = func(ctx context.Context, i int) error {
		c.mu.Lock()
		c.of[i]++
		c.total++
		c.mu.Unlock()
		return wait(ctx, i)
	}
	return data, c
}

func (c *tally) reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// exactly requires that every sample was read so often.
func (c *tally) exactly(t *testing.T, times int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.of {
		require.Equal(t, times, n, "sample %d", i)
	}
}

// sources are the kinds of source there are, over the same samples.
var sources = map[string]func(data canary, lo loader.Options) (*loader.Loader, error){
	"dataset": func(data canary, lo loader.Options) (*loader.Loader, error) { return loader.New(data, 4, lo) },
	"stream": func(data canary, lo loader.Options) (*loader.Loader, error) {
		return loader.NewIterable(stream(data, nil), 4, lo)
	},
	"one pass": func(data canary, lo loader.Options) (*loader.Loader, error) {
		return loader.NewIterable(newOnce(data).iterable(), 4, lo)
	},
}

// aheads are pipelines that read hundreds of samples ahead.
var aheads = map[string]func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error){
	"device": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 60}})
	},
	"several in a copy": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{Depth: 4, BatchesPerCopy: 3, Memory: prefetch.Memory{HostSlots: 60}})
	},
	"two streams": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: 2}, Memory: prefetch.Memory{HostSlots: 60}})
	},
	"transform": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.New(r.compute, ld, prefetch.Options{BatchesPerCopy: 2, Transform: passOn(cpuSpin, ms, r.data), Memory: prefetch.Memory{HostSlots: 60}})
	},
	"host": func(_ *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 60}})
	},
	"host with transform": func(r *rig, ld *loader.Loader) (*prefetch.Prefetcher, error) {
		return prefetch.NewHost(ld, prefetch.Options{Transform: passOn(cpuSpin, 0, r.data), Memory: prefetch.Memory{HostSlots: 60}})
	},
}

// over is r with a pipeline over a source of its data.
func (r *rig) over(source func(canary, loader.Options) (*loader.Loader, error), lo loader.Options, pipeline func(*rig, *loader.Loader) (*prefetch.Prefetcher, error)) {
	r.t.Helper()
	require.NoError(r.t, r.pf.Close())
	ld, err := source(r.data, lo)
	require.NoError(r.t, err)
	r.pf, err = pipeline(r, ld)
	require.NoError(r.t, err)
}

// leave ranges over at most n batches, and leaves the range in the given way. All of them
// keep what was read ahead.
func (r *rig) leave(n int, way string) (all []reading) {
	t, pf := r.t, r.pf
	defer func() {
		if v := recover(); v != nil && v != "stop" {
			panic(v)
		}
		switch way {
		case "Quiesce":
			require.NoError(t, pf.Quiesce(t.Context()))
		case "Start":
			require.NoError(t, pf.Start(t.Context()))
		case "Seek":
			at := pf.State()
			require.NoError(t, pf.Seek(at.Epoch, at.Position))
		case "Restore":
			require.NoError(t, pf.Restore(pf.State()))
		}
	}()
	if way == "reader" || way == "impatient reader" {
		reader, err := pf.Open(t.Context())
		require.NoError(t, err)
		for range n {
			b, err := reader.Next(t.Context())
			if err == prefetch.ErrEpochEnd {
				break
			}
			require.NoError(t, err)
			all = append(all, r.hand(b))
			b.Release()
		}
		if way == "impatient reader" {
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(enough)
			_, err := reader.Next(ctx)
			if err != prefetch.ErrEpochEnd {
				require.Equal(t, enough, err)
			}
		}
		require.NoError(t, reader.Close())
		return all
	}
	of := pf.Batches(t.Context())
	if way == "All" {
		of = pf.All(t.Context())
	}
	for b, err := range of {
		require.NoError(t, err)
		all = append(all, r.hand(b))
		if len(all) == n {
			if way == "panic" {
				panic("stop")
			}
			break
		}
	}
	return all
}

// Whatever way a range is left, the next one goes on with what was read ahead: over whole
// epochs no sample is read twice, and none is delivered twice or lost.
func TestNothingIsReadTwiceWhereARangeGoesOn(t *testing.T) {
	const samples, batches, epochs = 400, 100, 2
	for source, open := range sources {
		for form, pipeline := range aheads {
			for _, way := range []string{"break", "All", "panic", "reader", "impatient reader", "Quiesce", "Start", "Seek", "Restore"} {
				t.Run(source+"/"+form+"/"+way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						data, tally := costly(samples, 10*ms)
						lo := loader.Options{Workers: 4, Epochs: epochs}
						if source == "one pass" {
							lo.Epochs = 1
						}
						r := newRig(t, data, adversarial(ms), 4, lo, prefetch.Options{})
						r.over(open, lo, pipeline)
						random := rand.New(rand.NewPCG(1, 2))
						all := r.leave(1, way)
						time.Sleep(time.Hour)
						ahead := tally.reads()
						require.GreaterOrEqual(t, ahead, 60*4, "hundreds of reads that would be lost")
						time.Sleep(time.Hour)
						require.Equal(t, ahead, tally.reads())
						for r.pf.Epoch() < lo.Epochs {
							all = append(all, r.leave(1+random.IntN(15), way)...)
							time.Sleep(time.Duration(random.IntN(2)*random.IntN(1000)) * ms)
						}
						tally.exactly(t, lo.Epochs)
						require.NoError(t, r.dev.Synchronize(t.Context()))
						require.Len(t, all, lo.Epochs*batches)
						for i, got := range all {
							require.Equal(t, turn{i / batches, i % batches}, turn{got.at.Epoch, got.at.Batch})
							require.NoError(t, r.verify(got))
						}
						r.close()
					})
				})
			}
		}
	}
}

// A Map that is left has taken batches that it did not deliver, and begins anew behind what
// it has. Where it is left by its end nothing is read twice.
func TestWholeMapsReadNothingTwice(t *testing.T) {
	for form, pipeline := range aheads {
		if form == "host" || form == "host with transform" {
			continue
		}
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data, tally := costly(400, 10*ms)
				lo := loader.Options{Workers: 4, Epochs: 2}
				r := newRig(t, data, adversarial(ms), 4, lo, prefetch.Options{})
				r.over(sources["dataset"], lo, pipeline)
				n := 0
				for r.pf.Epoch() < 2 {
					for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, r.echo(always(ms))) {
						require.NoError(t, err)
						require.NoError(t, r.verify(got(res)))
						n++
					}
					time.Sleep(time.Second)
				}
				require.Equal(t, 200, n)
				tally.exactly(t, 2)
				r.close()
			})
		})
	}
}

// Where the next range can't go on from what was read ahead that is given up at once: its
// goroutines have ended when the call returns, and nothing more is read for it.
func TestLookAheadIsGivenUpWhereNobodyGoesOn(t *testing.T) {
	for form, pipeline := range aheads {
		for _, way := range []string{"Seek", "Restore", "next epoch", "context", "error", "Close"} {
			t.Run(form+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data, tally := costly(400, 10*ms)
					read, bad := data.read, false
					data.read = func(ctx context.Context, i int) error {
						if bad && i == 330 {
							return &userError{i}
						}
						return read(ctx, i)
					}
					lo := loader.Options{Workers: 4, Epochs: 2}
					r := newRig(t, data, adversarial(ms), 4, lo, prefetch.Options{})
					r.over(sources["dataset"], lo, pipeline)
					start := r.pf.State()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					bad = way == "error"
					n := 0
					var failed error
					for b, err := range r.pf.Batches(ctx) {
						if failed = err; err != nil {
							break
						}
						r.hand(b)
						if n++; n == 10 {
							time.Sleep(time.Hour)
							if way == "error" {
								continue
							}
							if way != "context" {
								break
							}
							cancel()
						}
					}
					require.GreaterOrEqual(t, tally.reads(), 240)
					if way != "context" && way != "error" {
						require.NotEmpty(t, workingAhead(), "until somebody goes elsewhere")
					}
					switch way {
					case "Seek":
						require.NoError(t, r.pf.Seek(0, 200))
					case "Restore":
						require.NoError(t, r.pf.Restore(start))
					case "next epoch":
						for epoch, batches := range r.pf.Epochs(t.Context()) {
							if epoch == 0 {
								continue // its rest is left out
							}
							synctest.Wait() // a goroutine that was joined is seen a little longer
							require.Empty(t, workingAhead())
							_ = batches
							break
						}
					case "context":
						require.ErrorIs(t, failed, context.Canceled)
						require.Equal(t, 10, n)
					case "error":
						var mine *userError
						require.ErrorAs(t, failed, &mine)
						require.Equal(t, 82, n)
					case "Close":
						require.NoError(t, r.dev.Synchronize(t.Context()))
						require.NoError(t, r.pf.Close())
					}
					reads := tally.reads()
					time.Sleep(time.Hour)
					require.Equal(t, reads, tally.reads(), "nothing is read for nobody")
					require.Empty(t, workingAhead(), "no goroutine is left")
					if way == "Close" {
						r.close()
						return
					}
					pool := r.pf.Stats().Pool
					require.Equal(t, pool.Slots, pool.Free, "nor a slot")
					bad = false
					left := some(t, r.pf.All(t.Context()), -1, "")
					first := map[string]turn{"Seek": {0, 50}, "Restore": {0, 0}, "next epoch": {1, 0}, "context": {0, 10}, "error": {0, 82}}[way]
					require.Equal(t, turns(2, 100)[100*first.epoch+first.batch:], left)
					require.Equal(t, reads+4*len(left), tally.reads(), "all of it is read anew, and nothing else")
					r.close()
				})
			})
		}
	}
}

// A pipeline that holds what it read ahead rests: it calls no device, and wakes for nothing.
func TestKeptLookAheadCostsNoTime(t *testing.T) {
	for source, open := range sources {
		for form, pipeline := range aheads {
			t.Run(source+"/"+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data, tally := costly(400, 10*ms)
					lo := loader.Options{Workers: 4, Epochs: 1}
					r := newRig(t, data, adversarial(ms), 4, lo, prefetch.Options{})
					r.over(open, lo, pipeline)
					require.Len(t, r.leave(10, "break"), 10)
					time.Sleep(time.Hour) // it reads ahead what it can hold
					synctest.Wait()
					calls, reads, woken := r.tap.Calls(), tally.reads(), wakes()
					time.Sleep(365 * 24 * time.Hour)
					synctest.Wait()
					require.Equal(t, calls, r.tap.Calls())
					require.Equal(t, reads, tally.reads())
					require.Less(t, wakes()-woken, uint64(1000), "in a year")
					require.Len(t, r.leave(100, "break"), 90)
					tally.exactly(t, 1)
					r.close()
				})
			})
		}
	}
}

// workingAhead are the stacks of all goroutines of the caller's bubble that loaders and
// Prefetchers have made, of which a run has several. Other tests may have left some.
func workingAhead() (stacks []string) {
	text := make([]byte, 1<<20)
	all := strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n")
	bubble := inBubble.FindString(all[0]) // the caller's own stack is the first
	if bubble == "" {
		panic("workingAhead is called outside of a bubble")
	}
	for _, stack := range all {
		ours := strings.Contains(stack, "leat-go/leat/loader.") || strings.Contains(stack, "leat-go/leat/prefetch.")
		if ours && inBubble.FindString(stack) == bubble && !strings.Contains(stack, "testing.tRunner(") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

var inBubble = regexp.MustCompile(`synctest bubble \d+\]`)

// wakes is how often goroutines of the process have begun to run, of which the runtime
// counts a part.
func wakes() (n uint64) {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}
