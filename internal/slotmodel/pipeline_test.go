package slotmodel_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slotmodel"
)

// alone is a user with a Reader or a Map, and a Close; helped has one more goroutine.
var (
	alone  = slotmodel.PipelineOptions{Sessions: 1, Nexts: 2, Slots: 2}
	helped = slotmodel.PipelineOptions{Sessions: 1, Nexts: 1, Slots: 1, Helper: true}
	again  = slotmodel.PipelineOptions{Sessions: 2, Nexts: 1, Slots: 1} // for make soak
)

// Whoever reads, maps, seeks and closes, and whatever hangs meanwhile: all is freed once,
// at the end, and nothing that is in use.
func TestEveryLifeKeepsThePromises(t *testing.T) {
	all := map[string]slotmodel.PipelineOptions{"alone": alone, "helped": helped}
	if os.Getenv("LEAT_SOAK") != "" {
		all["again"] = again
	}
	for name, o := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := slotmodel.ExplorePipeline(o)
			require.Empty(t, r.Violation, r)
			require.Greater(t, r.States, 100_000, "nothing was left out by mistake")
			t.Log(r)
		})
	}
}

// For every slip there is an order that breaks a promise.
func TestEverySlipIsFound(t *testing.T) {
	for s := slotmodel.NoSlip + 1; s <= slotmodel.NextImpatient; s++ {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			o := helped
			o.Slip = s
			r := slotmodel.ExplorePipeline(o)
			require.NotEmpty(t, r.Violation)
			t.Log(r)
		})
	}
}

// A machine that allows too much, or counts wrongly, is found.
func TestAWrongLifeIsFound(t *testing.T) {
	type state = life.Pipeline
	// only is the machine with another answer to one event.
	only := func(e life.PipelineEvent, answer func(state) (state, error)) func(state, life.PipelineEvent) (state, error) {
		return func(p state, is life.PipelineEvent) (state, error) {
			if is != e {
				return p.Next(is)
			}
			return answer(p)
		}
	}
	// behind is the machine with another state behind one event.
	behind := func(e life.PipelineEvent, change func(*state)) func(state, life.PipelineEvent) (state, error) {
		return only(e, func(p state) (state, error) {
			next, err := p.Next(e)
			if err == nil {
				change(&next)
			}
			return next, err
		})
	}
	// live is the machine that allows an event as if Close had not begun.
	live := func(e life.PipelineEvent) func(state, life.PipelineEvent) (state, error) {
		return only(e, func(p state) (state, error) {
			phase := p.Phase
			p.Phase = life.Live
			next, err := p.Next(e)
			next.Phase = phase
			return next, err
		})
	}
	for name, next := range map[string]func(state, life.PipelineEvent) (state, error){
		"two may read": only(life.Read, func(p state) (state, error) {
			p.Reader = life.Nobody
			return p.Next(life.Read)
		}),
		"nobody may read": only(life.Read, func(p state) (state, error) { return p, life.ErrBusy }),
		"it is closed":    only(life.Read, func(p state) (state, error) { return p, life.ErrClosed }),
		"busy for closed": only(life.Read, func(p state) (state, error) {
			if p.Phase != life.Live {
				return p, life.ErrBusy
			}
			return p.Next(life.Read)
		}),
		"read behind Close":  live(life.Read),
		"a Map behind Close": live(life.MapOver),
		"a lease behind it":  live(life.Lend),
		"a Map is no reader": behind(life.MapOver, func(p *state) { p.Reader = life.Nobody }),
		"a Map uses nothing": behind(life.MapOver, func(p *state) { p.Users-- }),
		"a lease is no use":  behind(life.Lend, func(p *state) { p.Users-- }),
		"a reaper is no use": behind(life.Use, func(p *state) { p.Users-- }),
		"one lease is all":   behind(life.Lend, func(p *state) { p.Users = 1 }),
		"one end is all":     behind(life.TakeBack, func(p *state) { p.Users = 0 }),
		"a use never ends":   behind(life.Unuse, func(p *state) { p.Users++ }),
		"a lease never ends": behind(life.TakeBack, func(p *state) { p.Users++ }),
		"it is read for ever": behind(life.EndRead, func(p *state) {
			p.Reader = life.Reading
		}),
		"no run begins":        behind(life.Begin, func(p *state) { p.Run = life.NoRun }),
		"a run never ends":     behind(life.Join, func(p *state) { p.Run = life.Running }),
		"what is stuck is not": behind(life.Stick, func(p *state) { p.Run = life.NoRun }),
		"Close does not begin": behind(life.Shut, func(p *state) { p.Phase = life.Live }),
		"nothing is reaped":    behind(life.Reap, func(p *state) { p.Phase = life.Closing }),
		"nobody leaves":        behind(life.Leave, func(p *state) { p.Left = false }),
		"no second reap": only(life.Reap, func(p state) (state, error) {
			if p.Phase == life.Reaping {
				return p, life.ErrWrong
			}
			return p.Next(life.Reap)
		}),
		"no second stick": only(life.Stick, func(p state) (state, error) {
			if p.Run == life.Stuck {
				return p, life.ErrWrong
			}
			return p.Next(life.Stick)
		}),
		"no join of what is stuck": only(life.Join, func(p state) (state, error) {
			if p.Run == life.Stuck {
				return p, life.ErrWrong
			}
			return p.Next(life.Join)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []slotmodel.PipelineOptions{alone, helped} {
				o.Next = next
				if r := slotmodel.ExplorePipeline(o); r.Violation != "" {
					t.Log(r)
					return
				}
			}
			t.Error("nothing shows it")
		})
	}
	for name, freed := range map[string]func(state) bool{
		"it is always freed": func(p state) bool { return p.Left },
		"it is never freed":  func(state) bool { return false },
		"at the first end":   func(p state) bool { return p.Users == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := helped
			o.Freed = freed
			r := slotmodel.ExplorePipeline(o)
			require.NotEmpty(t, r.Violation)
			t.Log(r)
		})
	}
}
