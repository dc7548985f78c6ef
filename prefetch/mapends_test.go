package prefetch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Tests of what comes while a Map ends.

// A Map that is left takes its results back before anybody else gets in, also from
// another goroutine, and also where a step was stuck and returns later.
func TestNobodyGetsInBeforeAMapHasEnded(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		for _, next := range []string{"Map", "another Map", "Batches", "Seek"} {
			if stuck && next == "Seek" {
				continue // it reports nothing of another's
			}
			t.Run(next, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data, goOn := canary{n: 60, width: 8}, make(chan struct{})
					co := adversarial(time.Millisecond)
					r := newRig(t, data, co, 2, graceful, prefetch.Options{})
					echo := r.echo(always(20 * time.Millisecond))
					step := func(b prefetch.Batch, out prefetch.Fields) error {
						if stuck && b.Position() == (prefetch.Position{Batch: 3, First: 6}) {
							<-goOn
						}
						return echo(b, out)
					}
					out := prefetch.Output{Fields: data.Fields()}
					left := make(chan struct{})
					go func() {
						defer close(left)
						for _, err := range r.pf.Map(t.Context(), out, step) {
							require.NoError(t, err)
							time.Sleep(50 * time.Millisecond) // results pile up
							break                             // and are taken back, 20 ms each
						}
					}()
					time.Sleep(71 * time.Millisecond)
					if stuck {
						<-left
						close(goOn)
					}
					second := out
					if next == "another Map" {
						second.Slots = 2
					}
					n := 0
					for busy := true; busy; {
						busy = false
						check := func(err error) bool {
							busy = errors.Is(err, prefetch.ErrBusy)
							var stuck *loader.StuckError // of the first, told to the next
							if busy || errors.As(err, &stuck) {
								busy = true
								time.Sleep(time.Millisecond)
								return false
							}
							require.NoError(t, err)
							return true
						}
						switch next {
						case "Seek":
							check(r.pf.Seek(0, 0))
						case "Batches":
							for b, err := range r.pf.Batches(t.Context()) {
								if !check(err) {
									break
								}
								_ = b.Len()
								n++
							}
						default:
							for res, err := range r.pf.Map(t.Context(), second, echo) {
								if !check(err) {
									break
								}
								require.NoError(t, r.verify(got(res)))
								n++
							}
						}
					}
					if next != "Seek" {
						require.Equal(t, 29, n)
					}
					<-left
					r.close()
				})
			})
		}
	}
}

// Close beside a Map that ends leaves nothing.
func TestCloseBesideAMapThatEnds(t *testing.T) {
	for wait := range 12 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 60, width: 8}, adversarial(time.Millisecond), 2, graceful, prefetch.Options{Streams: prefetch.Streams{Compute: 2}})
			left := make(chan struct{})
			go func() {
				defer close(left)
				for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(20*time.Millisecond))) {
					require.NoError(t, err)
					time.Sleep(50 * time.Millisecond)
					break
				}
			}()
			time.Sleep(time.Duration(60+10*wait) * time.Millisecond)
			require.NoError(t, r.pf.Close())
			<-left
			require.NoError(t, r.dev.Synchronize(t.Context()))
			synctest.Wait()
			r.nothingLeft()
		})
	}
}

// The fields of an Output may be changed behind the Map: they are its own.
func TestAnOutputIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 4, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
		fields := []loader.Field{{Name: "y", DType: dtype.Int64, Shape: []int{2}}}
		for _, want := range []int{2, 5, 5, 1} {
			fields[0].Shape[0] = want
			for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: fields}, func(b prefetch.Batch, out prefetch.Fields) error {
				require.Equal(t, []int{2, want}, out.Field("y").Shape)
				return b.Stream().Memset(out.Field("y").View, byte(want))
			}) {
				require.NoError(t, err)
				require.Equal(t, []int{2, want}, res.Field("y").Shape)
				require.Len(t, res.Field("y").Bytes, 2*want*8)
			}
		}
		r.close()
	})
}

// A Clone beside a Release is of the batch, or panics as on any released one.
func TestACloneBesideARelease(t *testing.T) {
	for _, per := range []int{1, 3} {
		r := newRig(t, canary{n: 600, width: 16}, cpu.Options{}, 2, plain, prefetch.Options{Depth: 1, BatchesPerCopy: per})
		type cloned struct {
			c  *prefetch.Clone
			at prefetch.Position
		}
		var clones []cloned
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			at, done := b.Position(), make(chan struct{})
			go func() {
				defer close(done)
				defer func() {
					if v := recover(); v != nil {
						require.Contains(t, v, "after its release")
					}
				}()
				c, err := b.Clone()
				require.NoError(t, err)
				clones = append(clones, cloned{c, at})
			}()
			b.Release()
			<-done
		}
		for _, x := range clones {
			got := reading{at: x.at, rows: 2, index: make([]byte, 16), bytes: make([]byte, 32)}
			for name, to := range map[string][]byte{"index": got.index, "bytes": got.bytes} {
				require.NoError(t, r.compute.CopyD2H(to, x.c.Field(name).View))
			}
			require.NoError(t, r.compute.Synchronize(t.Context()))
			require.NoError(t, r.verify(got))
			require.NoError(t, x.c.Close())
		}
		r.close()
	}
}
