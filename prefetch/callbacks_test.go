package prefetch_test

import (
	"errors"
	"iter"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Ways in which the user's code can fail to return.
var unreturned = []struct {
	name string
	do   func()
	is   func(t *testing.T, err error)
}{
	{"Goexit", runtime.Goexit, func(t *testing.T, err error) {
		var exit *loader.GoexitError
		require.ErrorAs(t, err, &exit)
		require.Contains(t, string(exit.Stack), "callbacks_test.go")
	}},
	{"panic", func() { panic("oops") }, func(t *testing.T, err error) {
		var p *loader.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "oops", p.Value)
		require.Contains(t, string(p.Stack), "callbacks_test.go")
	}},
	{"panic(nil)", func() { panic(nil) }, func(t *testing.T, err error) {
		var p *loader.PanicError
		require.ErrorAs(t, err, &p)
	}},
}

// A transform that doesn't return fails its batch, after all batches before it. The
// next range goes on at that batch, and Close leaves nothing.
func TestATransformThatDoesNotReturn(t *testing.T) {
	for _, way := range unreturned {
		for _, host := range []bool{false, true} {
			for _, per := range []int{1, 3} {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 12, width: 4}
					pass, broken := passOn(cpuSpin, 0, data), true
					po := prefetch.Options{BatchesPerCopy: per, Transform: &prefetch.Transform{Out: pass.Out, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
						if broken && in.Position().Batch == 4 {
							broken = false
							way.do()
						}
						return pass.Apply(s, out, in)
					}}}
					lo := loader.Options{Workers: 2, Epochs: 1}
					pf, end := (*prefetch.Prefetcher)(nil), func() {}
					if host {
						pf = hostOf(t, data, 1, lo, po)
					} else {
						r := newRig(t, data, cpu.Options{}, 1, lo, po)
						pf, end = r.pf, r.close
					}
					var failed error
					next := 0
					for pf.Epoch() == 0 {
						for b, err := range pf.Batches(t.Context()) {
							if err != nil {
								require.NoError(t, failed)
								failed = err
								require.LessOrEqual(t, next, 4)
								break
							}
							require.Equal(t, next, b.Position().Batch)
							next++
						}
					}
					require.Equal(t, 12, next)
					var at *prefetch.StageError
					require.ErrorAs(t, failed, &at)
					require.Equal(t, 4, at.Position.Batch)
					way.is(t, failed)
					require.NoError(t, pf.Close())
					end()
				})
			}
		}
	}
}

func TestAStepThatDoesNotReturn(t *testing.T) {
	for _, way := range unreturned {
		for _, asFinished := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 12, width: 4}, cpu.Options{}, 1, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{Streams: prefetch.Streams{Compute: 2}})
				broken := true
				step := func(b prefetch.Batch, out prefetch.Fields) error {
					if broken && b.Position().Batch == 4 {
						broken = false
						way.do()
					}
					return b.Stream().CopyD2D(out.Field("index").View, b.Field("index").View)
				}
				var failed error
				seen := map[int]bool{}
				for r.pf.Epoch() == 0 {
					for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()[:1], AsFinished: asFinished}, step) {
						if err != nil {
							require.NoError(t, failed)
							failed = err
							require.Len(t, seen, 4)
							continue
						}
						seen[res.Position().Batch] = true
					}
				}
				require.Len(t, seen, 12)
				var at *prefetch.StageError
				require.ErrorAs(t, failed, &at)
				require.Equal(t, 4, at.Position.Batch)
				way.is(t, failed)
				r.close()
			})
		}
	}
}

// A loop's body that ends its goroutine ends its lease, and the loop; the next one
// goes on behind its batch.
func TestABodyThatDoesNotReturn(t *testing.T) {
	for _, way := range unreturned {
		for _, form := range []string{"range", "map", "pull"} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 12, width: 4}, cpu.Options{}, 1, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{})
				var got []int
				body := func(at prefetch.Position) {
					if got = append(got, at.Batch); len(got) == 5 {
						way.do()
					}
				}
				loop := func() {
					switch form {
					case "range":
						for b, err := range r.pf.Batches(t.Context()) {
							if err != nil {
								t.Error(err)
							}
							body(b.Position())
						}
					case "map":
						for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()[:1]}, func(b prefetch.Batch, out prefetch.Fields) error {
							return b.Stream().CopyD2D(out.Field("index").View, b.Field("index").View)
						}) {
							if err != nil {
								t.Error(err)
							}
							body(res.Position())
						}
					case "pull":
						next, stop := iter.Pull2(r.pf.Batches(t.Context()))
						defer stop()
						for {
							b, err, ok := next()
							if !ok {
								return
							}
							if err != nil {
								t.Error(err)
							}
							body(b.Position())
						}
					}
				}
				for range 2 {
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						loop()
					}()
					<-done
				}
				require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, got)
				r.close()
			})
		}
	}
}

// A kernel or a host function that doesn't return ends the device. The range says so,
// and Close returns.
func TestDeviceCodeThatDoesNotReturn(t *testing.T) {
	for _, way := range unreturned {
		for _, kernel := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 100, width: 4}, adversarial(time.Millisecond), 1, loader.Options{Workers: 2, Epochs: 1}, prefetch.Options{})
				var failed error
				for b, err := range r.pf.Batches(t.Context()) {
					if failed = err; err != nil {
						break
					}
					if b.Position().Batch != 4 {
						continue
					}
					if kernel {
						bad := &device.Kernel{Name: "bad", Go: func(*device.Args) { way.do() }}
						require.NoError(t, b.Stream().Launch(&device.Launch{Kernel: bad, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}))
					} else {
						require.NoError(t, b.Stream().HostFunc(way.do))
					}
				}
				require.ErrorIs(t, failed, device.ErrFault)
				var exit *cpu.Goexit
				var panicked *cpu.Panic
				require.True(t, errors.As(failed, &exit) || errors.As(failed, &panicked))
				require.ErrorIs(t, r.pf.Close(), device.ErrFault)
			})
		}
	}
}

// Close called by code that Close waits for: it ends within the grace period, and what
// that code may use is freed when it has returned.
func TestCloseFromWithinTheUsersCode(t *testing.T) {
	for _, where := range []string{"transform", "step", "body", "map's body"} {
		for _, twice := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				data := canary{n: 40, width: 4}
				pass := passOn(cpuSpin, 0, data)
				var r *rig
				closing := func(here string, at prefetch.Position) {
					if here != where || at.Batch != 4 {
						return
					}
					if twice {
						other := make(chan struct{})
						go func() { defer close(other); _ = r.pf.Close() }()
						_ = r.pf.Close()
						<-other
					} else {
						_ = r.pf.Close()
					}
				}
				po := prefetch.Options{Transform: &prefetch.Transform{Out: pass.Out, Apply: func(s *device.Stream, out, in prefetch.Fields) error {
					closing("transform", in.Position())
					return pass.Apply(s, out, in)
				}}}
				r = newRig(t, data, cpu.Options{}, 1, loader.Options{Workers: 2, Epochs: 1}, po)
				start := time.Now()
				var failed error
				if where == "step" || where == "map's body" {
					for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()[:1]}, func(b prefetch.Batch, out prefetch.Fields) error {
						closing("step", b.Position())
						return b.Stream().CopyD2D(out.Field("index").View, b.Field("index").View)
					}) {
						if failed = err; err == nil {
							closing("map's body", res.Position())
						}
					}
				} else {
					for b, err := range r.pf.Batches(t.Context()) {
						if failed = err; err == nil {
							closing("body", b.Position())
						}
					}
				}
				require.ErrorIs(t, failed, prefetch.ErrClosed)
				require.LessOrEqual(t, time.Since(start), 10*time.Second)
				time.Sleep(time.Hour)
				synctest.Wait()
				r.nothingLeft()
			})
		}
	}
}
