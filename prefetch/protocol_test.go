package prefetch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// adversarial is a card on which a missing edge shows: destinations are poisoned
// when a copy starts, sources are read when it ends.
func adversarial(in time.Duration) cpu.Options {
	return cpu.Options{Model: modelled(in), Adversary: &cpu.Adversary{Poison: true, LateRead: true}}
}

// An edge is one of the protocol's calls, by the name of its event and stream.
type edge struct {
	name          string
	op            devicetest.Op
	event, stream string
}

// Two more have a transform between the copy and compute, on whose stream (a) and
// (b) then are.
var transformEdges = []edge{
	{name: "a/Record(ready)", op: devicetest.Record, event: "ready", stream: "transform"},
	{name: "a/Wait(ready)", op: devicetest.Wait, event: "ready", stream: "compute"},
	{name: "b/Record(consumed)", op: devicetest.Record, event: "consumed", stream: "compute"},
	{name: "b/Wait(consumed)", op: devicetest.Wait, event: "consumed", stream: "transform"},
	{name: "c/Record(copied)", op: devicetest.Record, event: "copied", stream: "copy"},
	{name: "d/Record(filled)", op: devicetest.Record, event: "filled", stream: "copy"},
	{name: "d/Wait(filled)", op: devicetest.Wait, event: "filled", stream: "transform"},
	{name: "e/Record(read)", op: devicetest.Record, event: "read ", stream: "transform"},
	{name: "e/Wait(read)", op: devicetest.Wait, event: "read ", stream: "copy"},
}

var edges = []edge{
	{name: "a/Record(ready)", op: devicetest.Record, event: "ready", stream: "copy"},
	{name: "a/Wait(ready)", op: devicetest.Wait, event: "ready", stream: "compute"},
	{name: "b/Record(consumed)", op: devicetest.Record, event: "consumed", stream: "compute"},
	{name: "b/Wait(consumed)", op: devicetest.Wait, event: "consumed", stream: "copy"},
	{name: "c/Record(copied)", op: devicetest.Record, event: "copied", stream: "copy"},
}

// load is how slow each stage is: an edge shows where what it holds back is fast
// and what it waits for is slow.
type load struct{ in, transform, compute time.Duration }

// The k-th call of each edge is swallowed in turn, and the contents must show it.
func TestEveryEdgeIsNeeded(t *testing.T) {
	const (
		ms        = time.Millisecond
		batches   = 20
		depth     = 2
		hostSlots = 3
	)
	for _, pipeline := range []struct {
		name  string
		edges []edge
		loads map[byte]load
		per   int // batches a copy
	}{
		{"plain", edges, map[byte]load{'a': {6 * ms, 0, 2 * ms}, 'b': {2 * ms, 0, 6 * ms}, 'c': {6 * ms, 0, 2 * ms}}, 1},
		{"three in a copy", edges, map[byte]load{'a': {9 * ms, 0, ms}, 'b': {2 * ms, 0, 6 * ms}, 'c': {9 * ms, 0, ms}}, 3},
		{"transform", transformEdges, map[byte]load{'a': {ms, 6 * ms, ms}, 'b': {ms, ms, 6 * ms}, 'c': {6 * ms, ms, ms},
			'd': {6 * ms, ms, ms}, 'e': {ms, 6 * ms, ms}}, 1},
	} {
		mutate := func(t *testing.T, l load, rule devicetest.Rule) (fired int64, err error) {
			synctest.Test(t, func(t *testing.T) {
				data := canary{n: batches * pipeline.per * 4, width: 32}
				po := prefetch.Options{Depth: depth, BatchesPerCopy: pipeline.per, Memory: prefetch.Memory{HostSlots: hostSlots * pipeline.per}}
				if l.transform > 0 {
					po.Transform = passOn(cpuSpin, l.transform, data)
				}
				co := adversarial(l.in)
				co.Model.ComputeEngines = 2
				r := newRig(t, data, co, 4, loader.Options{Shuffle: true, Seed: 7, Workers: 2}, po)
				armed := r.tap.Arm(rule)
				err = r.epochs(1, l.compute)
				fired = armed.Fired()
				r.close()
				if rule.Swallow {
					require.NotEmpty(t, r.orders.found())
				}
			})
			return fired, err
		}
		for _, e := range pipeline.edges {
			l := pipeline.loads[e.name[0]]
			_, err := mutate(t, l, devicetest.Rule{Op: devicetest.Record, Event: "no such event"})
			require.NoError(t, err, "unmutated")
			// The last slots are not used again: nothing but Close depends on their events.
			for k := int64(1); k <= batches-depth-hostSlots-2; k++ {
				t.Run(fmt.Sprintf("%s/%s/k=%d", pipeline.name, e.name, k), func(t *testing.T) {
					fired, err := mutate(t, l, devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
					require.EqualValues(t, 1, fired)
					require.Error(t, err, "the contents are right without this call")
				})
			}
		}
	}
}
