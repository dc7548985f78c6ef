package slotmodel_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slotmodel"
)

// shapes are small enough for every run of the tests.
var shapes = map[string]slotmodel.Shape{
	"single":           {Buffers: 3, Slots: 2, Together: 1, Computes: 1, Batches: 3},
	"together":         {Buffers: 3, Slots: 2, Together: 2, Computes: 1, Batches: 3},
	"used on":          {Buffers: 2, Slots: 1, Together: 2, Computes: 1, Batches: 3, UsedOn: true},
	"computes":         {Buffers: 2, Slots: 2, Together: 1, Computes: 2, Batches: 3},
	"computes at once": {Buffers: 2, Slots: 1, Together: 2, Computes: 2, Batches: 3},
}

// large are for make soak.
var large = map[string]slotmodel.Shape{
	"single":   {Buffers: 2, Slots: 2, Together: 1, Computes: 1, Batches: 4},
	"laps":     {Buffers: 2, Slots: 1, Together: 1, Computes: 1, Batches: 6},
	"together": {Buffers: 4, Slots: 1, Together: 2, Computes: 1, Batches: 4},
	"used on":  {Buffers: 2, Slots: 2, Together: 2, Computes: 1, Batches: 3, UsedOn: true},
	"computes": {Buffers: 2, Slots: 3, Together: 1, Computes: 2, Batches: 4},
}

func faults() (all []slotmodel.Fault) {
	for f := slotmodel.NoFault; f <= slotmodel.Stuck; f++ {
		all = append(all, f)
	}
	return all
}

// Whatever goes wrong, and whenever: every order of things keeps every promise.
func TestEveryInterleavingKeepsThePromises(t *testing.T) {
	for name, shape := range shapes {
		everyFault(t, name, shape)
	}
}

// The same with more of everything.
func TestSoakLargerPipelines(t *testing.T) {
	if os.Getenv("LEAT_SOAK") == "" {
		t.Skip("it takes minutes: make soak")
	}
	for name, shape := range large {
		everyFault(t, name, shape)
	}
}

func everyFault(t *testing.T, name string, shape slotmodel.Shape) {
	for _, f := range faults() {
		t.Run(name+"/"+f.String(), func(t *testing.T) {
			t.Parallel()
			r, _ := slotmodel.Explore(slotmodel.Options{Shape: shape, Fault: f})
			require.Empty(t, r.Violation, r)
			require.Greater(t, r.States, 500, "nothing was left out by mistake")
			t.Log(r)
		})
	}
}

// For every mistake there is an order that breaks a promise.
func TestEveryMistakeIsFound(t *testing.T) {
	type found struct {
		shape string
		fault slotmodel.Fault
	}
	with := map[slotmodel.Mistake]found{
		slotmodel.OwnEvents:         {"together", slotmodel.NoFault},
		slotmodel.RecordTooEarly:    {"together", slotmodel.NoFault},
		slotmodel.EndReadWithFirst:  {"together", slotmodel.NoFault},
		slotmodel.BackWithFirst:     {"together", slotmodel.NoFault},
		slotmodel.NoWaitUsed:        {"used on", slotmodel.NoFault},
		slotmodel.NoRecordUsed:      {"used on", slotmodel.NoFault},
		slotmodel.TakeUnread:        {"computes", slotmodel.NoFault},
		slotmodel.PutDoubtful:       {"single", slotmodel.UploadFails},
		slotmodel.CopiedInFault:     {"single", slotmodel.RecycleFails},
		slotmodel.FreeFailed:        {"single", slotmodel.ReleaseFails},
		slotmodel.RestWithoutCopies: {"single", slotmodel.UploadFails},
		slotmodel.RestWithoutReads:  {"single", slotmodel.ReleaseFails},
		slotmodel.PutStuck:          {"single", slotmodel.Stuck},
		slotmodel.PutUnadmitted:     {"single", slotmodel.Stuck},
		slotmodel.KeepDiscarded:     {"single", slotmodel.Stopped},
		slotmodel.SkipFailed:        {"single", slotmodel.UploadFails},
	}
	for e := slotmodel.None + 1; e <= slotmodel.SkipFailed; e++ {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			w, ok := with[e]
			if !ok { // an edge that every pipeline needs
				w.shape = "single"
			}
			r, _ := slotmodel.Explore(slotmodel.Options{Shape: shapes[w.shape], Fault: w.fault, Mistake: e})
			require.NotEmpty(t, r.Violation)
			require.NotEmpty(t, r.Trace)
			t.Log(r)
		})
	}
}

// smallest is where the machines are tried with every fault.
var smallest = slotmodel.Shape{Buffers: 2, Slots: 1, Together: 2, Computes: 1, Batches: 3}

// The machines allow what a pipeline does, and nothing else.
func TestTheMachinesAllowWhatIsDone(t *testing.T) {
	done := map[string]bool{}
	for _, f := range faults() {
		_, moves := slotmodel.Explore(slotmodel.Options{Shape: smallest, Fault: f})
		for b, events := range moves.Buffers {
			for e, is := range events {
				done[fmt.Sprintf("%v of a %v buffer", e, b)] = is
			}
		}
		for b, events := range moves.Batches {
			for e, is := range events {
				done[fmt.Sprintf("%v of a %v batch", e, b)] = is
			}
		}
	}
	allowed := map[string]bool{}
	for _, m := range bufferMoves() {
		allowed[fmt.Sprintf("%v of a %v buffer", m.e, m.from)] = true
	}
	for _, m := range batchMoves() {
		allowed[fmt.Sprintf("%v of a %v batch", m.e, m.from)] = true
	}
	require.Equal(t, allowed, done)
}

type move[S, E any] struct {
	from S
	e    E
}

func bufferMoves() (all []move[life.Buffer, life.BufferEvent]) {
	for from := life.Free; from <= life.Quarantined; from++ {
		for e := life.Get; e <= life.Readmit; e++ {
			if _, ok := from.Next(e); ok {
				all = append(all, move[life.Buffer, life.BufferEvent]{from, e})
			}
		}
	}
	return all
}

func batchMoves() (all []move[life.Batch, life.BatchEvent]) {
	for from := life.Empty; from <= life.Leased; from++ {
		for e := life.Fill; e <= life.Release; e++ {
			if _, ok := from.Next(e); ok {
				all = append(all, move[life.Batch, life.BatchEvent]{from, e})
			}
		}
	}
	return all
}

// A machine that refuses one of its moves, or leads elsewhere by it, is found.
func TestAWrongMachineIsFound(t *testing.T) {
	caught := func(t *testing.T, o slotmodel.Options) {
		t.Parallel()
		o.Shape = smallest
		for _, o.Fault = range faults() {
			if r, _ := slotmodel.Explore(o); r.Violation != "" {
				return
			}
		}
		t.Error("nothing shows it")
	}
	for _, m := range bufferMoves() {
		for to := life.Free; to <= life.Quarantined+1; to++ { // the last stands for a refusal
			if is, _ := m.from.Next(m.e); to == is {
				continue
			}
			t.Run(fmt.Sprintf("%v of a %v buffer leads to %d", m.e, m.from, to), func(t *testing.T) {
				caught(t, slotmodel.Options{Buffer: func(b life.Buffer, e life.BufferEvent) (life.Buffer, bool) {
					switch {
					case b != m.from || e != m.e:
						return b.Next(e)
					case to > life.Quarantined:
						return b, false
					}
					return to, true
				}})
			})
		}
	}
	for _, m := range batchMoves() {
		for to := life.Empty; to <= life.Leased+1; to++ {
			if is, _ := m.from.Next(m.e); to == is {
				continue
			}
			t.Run(fmt.Sprintf("%v of a %v batch leads to %d", m.e, m.from, to), func(t *testing.T) {
				caught(t, slotmodel.Options{Batch: func(b life.Batch, e life.BatchEvent) (life.Batch, bool) {
					switch {
					case b != m.from || e != m.e:
						return b.Next(e)
					case to > life.Leased:
						return b, false
					}
					return to, true
				}})
			})
		}
	}
}
