package group_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// closeLost closes the pool and what is left of the devices, of which some have failed.
func (s *shop) closeLost(lost ...int) {
	s.t.Helper()
	err := s.p.Close()
	for i, c := range s.cards {
		if slices.Contains(lost, i) {
			require.ErrorContains(s.t, err, fmt.Sprintf("device %d (", i))
			continue
		}
		require.NotContains(s.t, fmt.Sprint(err), fmt.Sprintf("device %d (", i))
		c.close(s.t)
	}
}

// Whichever devices fail, and when: every result comes once, whole and in its order, as long
// as one device is left; and if none is, the range ends and says so.
func TestOthersDoWhatALostDeviceHad(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		devices := rapid.IntRange(2, 4).Draw(rt, "devices")
		const steps = 60
		fails := make([]int, devices) // with so many results delivered
		var each []time.Duration
		var models []*cpu.Model
		for i := range fails {
			fails[i] = rapid.IntRange(0, 2*steps).Draw(rt, fmt.Sprint("fails ", i))
			each = append(each, time.Duration(rapid.IntRange(1, 20).Draw(rt, fmt.Sprint("step ", i)))*ms)
			models = append(models, copies(time.Duration(rapid.IntRange(0, 4).Draw(rt, fmt.Sprint("copy ", i)))*ms))
		}
		asFinished := rapid.Bool().Draw(rt, "as finished")
		po := prefetch.Options{Depth: rapid.IntRange(1, 4).Draw(rt, "depth"), Memory: prefetch.Memory{HostSlots: rapid.IntRange(1, 6).Draw(rt, "hostSlots")}}
		synctest.Test(t, func(t *testing.T) {
			s := newShop(t, canary{n: 2 * steps, width: 5}, models, 2, loader.Options{Shuffle: true, Workers: 4, Epochs: 1}, po, speeds(each...))
			out := s.output()
			out.AsFinished = asFinished
			seen := make([]int, steps)
			got := 0
			var failed error
			start := time.Now()
			for r, err := range s.p.Map(t.Context(), out, s.work) {
				if err != nil {
					failed = err
					break
				}
				s.check(r)
				if !asFinished {
					require.Equal(t, got, r.Position().Batch)
				}
				seen[r.Position().Batch]++
				got++
				for i, at := range fails {
					if got >= at {
						s.cards[i].broken.Store(true)
					}
				}
			}
			require.Less(t, time.Since(start), (steps+40)*25*ms, "nobody waits for what will not come")
			var lost []int
			for _, l := range s.p.Lost() {
				require.ErrorIs(t, l, device.ErrFault)
				require.ErrorIs(t, l, errBroken)
				require.Equal(t, "cpu", l.Device)
				lost = append(lost, l.Index)
			}
			if len(lost) < devices {
				require.NoError(t, failed)
				require.Equal(t, steps, got)
				require.Equal(t, 1, s.p.Epoch())
			} else if failed != nil {
				require.ErrorIs(t, failed, errBroken)
				for i := range devices {
					require.ErrorContains(t, failed, fmt.Sprintf("device %d (cpu)", i))
				}
			}
			for batch, times := range seen {
				if times != 1 {
					require.Zero(t, times, "batch %d", batch)
					require.Error(t, failed, "batch %d is missing", batch)
				}
			}
			s.closeLost(lost...)
		})
	})
}

// What is lost costs no more than doing it again, and the range after that does without the
// device from its beginning.
func TestALostDeviceCostsItsShare(t *testing.T) {
	for _, asFinished := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const steps = 200
			s := newShop(t, canary{n: steps, width: 5}, repeat(copies(ms), 4), 1, loader.Options{Workers: 8, Epochs: 2}, prefetch.Options{}, speeds(10*ms, 10*ms, 10*ms, 10*ms))
			out := s.output()
			out.AsFinished = asFinished
			n, start := 0, time.Now()
			for r, err := range s.p.Map(t.Context(), out, s.work) {
				require.NoError(t, err)
				s.check(r)
				if n++; n == 17 {
					s.cards[2].broken.Store(true)
				}
			}
			require.Equal(t, steps, n)
			require.Len(t, s.p.Lost(), 1)
			// 17 by four devices, the rest by three, and what the lost one had once more.
			require.Less(t, time.Since(start), 17*10*ms/4+(steps-17+4)*10*ms/3+5*10*ms)
			took, by := s.results2(out)
			require.Less(t, took, (steps/3+3)*10*ms)
			require.Zero(t, by[2])
			for r, err := range s.p.Map(t.Context(), out, s.work) {
				t.Fatal("both epochs are over", r, err)
			}
			s.closeLost(2)
		})
	}
}

// onBus is a device that tells where it is.
type onBus struct {
	driver.Device
	at string
}

func (d onBus) Properties() driver.Properties {
	p := d.Device.Properties()
	p.PCI = d.at
	return p
}

// Who has lost a card wants to know in which slot it sits.
func TestALostDeviceSaysWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cards []*card
		for i := range 2 {
			c := &card{spin: busy}
			drv, err := cpu.New(cpu.Options{Model: copies(ms), Adversary: &cpu.Adversary{Fault: c.fault}})
			require.NoError(t, err)
			c.open(t, onBus{drv, fmt.Sprintf("0000:%d1:00.0", i)})
			cards = append(cards, c)
		}
		s := newShopOn(t, canary{n: 40, width: 5}, cards, 2, loader.Options{Workers: 2}, prefetch.Options{}, speeds(2*ms, 2*ms))
		for r, err := range s.p.Map(t.Context(), s.output(), s.work) {
			require.NoError(t, err)
			s.check(r)
			cards[1].broken.Store(true)
		}
		lost := s.p.Lost()
		require.Len(t, lost, 1)
		require.Equal(t, 1, lost[0].Index)
		require.Equal(t, "cpu at 0000:11:00.0", lost[0].Device)
		require.ErrorContains(t, lost[0], "device 1 (cpu at 0000:11:00.0)")
		require.Contains(t, s.p.Stats().String(), "and has failed")
		s.closeLost(1)
	})
}

// results2 is results without a look at the order.
func (s *shop) results2(out prefetch.Output) (took time.Duration, by []int) {
	by = make([]int, len(s.cards))
	start := time.Now()
	for r, err := range s.p.Map(s.t.Context(), out, s.work) {
		require.NoError(s.t, err)
		s.check(r)
		by[r.Device()]++
	}
	return time.Since(start), by
}

// A sample that can't be read, and work that fails in every way that there is: the error comes
// behind all results before it, in every order, and says where; the devices go on to be used.
func TestAnErrorComesBehindAllResultsBeforeIt(t *testing.T) {
	const steps = 40
	bad := errors.New("unreadable")
	for _, way := range []string{"read", "error", "panic", "goexit", "none"} {
		for _, asFinished := range []bool{false, true} {
			for _, failing := range []int{0, 1, 17, steps - 1} {
				t.Run(fmt.Sprintf("%s/asFinished=%v/batch=%d", way, asFinished, failing), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						broken := true
						data := canary{n: 2 * steps, width: 5, read: func(_ context.Context, i int) error {
							if broken && way == "read" && i == 2*failing {
								return bad
							}
							return nil
						}}
						s := newShop(t, data, repeat(copies(ms), 3), 2, loader.Options{Workers: 4, Epochs: 1}, prefetch.Options{}, speeds(3*ms, 7*ms, 20*ms))
						work := func(i int, b prefetch.Batch, out prefetch.Fields) error {
							if broken && b.Position().Batch == failing {
								switch way {
								case "error":
									return bad
								case "panic":
									panic(bad)
								case "goexit":
									runtime.Goexit()
								}
							}
							return s.work(i, b, out)
						}
						out := s.output()
						out.AsFinished = asFinished
						seen := make(map[int]int)
						var failed error
						for r, err := range s.p.Map(t.Context(), out, work) {
							if err != nil {
								failed = err
								break
							}
							s.check(r)
							seen[r.Position().Batch]++
						}
						if way == "none" {
							require.NoError(t, failed)
							require.Len(t, seen, steps)
							s.close()
							return
						}
						var of *group.DeviceError
						require.ErrorAs(t, failed, &of)
						var step *prefetch.StageError
						var exit *loader.GoexitError
						switch way {
						case "read":
							var at *loader.Error
							require.ErrorAs(t, failed, &at)
							require.Equal(t, failing, at.Batch)
						case "goexit":
							require.ErrorAs(t, failed, &exit)
						default:
							require.ErrorAs(t, failed, &step)
							require.Equal(t, failing, step.Position.Batch)
						}
						if way != "goexit" {
							require.ErrorIs(t, failed, bad)
						}
						for batch := range failing {
							require.Equal(t, 1, seen[batch], "batch %d", batch)
						}
						require.Zero(t, seen[failing])
						require.EqualValues(t, 2*failing, s.p.State().Position)
						require.Empty(t, s.p.Lost())
						broken = false
						require.Equal(t, steps-failing, len(s.until(out, 1<<30, "break")), "the next range goes on there")
						s.close()
					})
				})
			}
		}
	}
}

// Close at any moment, from the body and from elsewhere.
func TestPoolClosesAtAnyMoment(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		for at := range 12 {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, canary{n: 100, width: 5}, repeat(copies(ms), 3), 2, loader.Options{Workers: 4}, prefetch.Options{}, speeds(3*ms, 7*ms, 20*ms))
				if !inBody {
					time.AfterFunc(time.Duration(at)*5*ms, func() { _ = s.p.Close() })
				}
				n := 0
				var failed error
				for r, err := range s.p.Map(t.Context(), s.output(), s.work) {
					if failed = err; err != nil {
						break
					}
					s.check(r)
					if n++; inBody && n > at {
						require.NoError(t, s.p.Close())
					}
				}
				require.ErrorIs(t, failed, prefetch.ErrClosed)
				for _, err := range s.p.Map(t.Context(), s.output(), s.work) {
					require.ErrorIs(t, err, prefetch.ErrClosed)
				}
				require.ErrorIs(t, s.p.Seek(0, 0), prefetch.ErrClosed)
				synctest.Wait()
				for _, c := range s.cards {
					require.NoError(t, c.dev.Synchronize(t.Context()))
				}
				s.close()
			})
		}
	}
}
