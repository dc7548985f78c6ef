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

var edges = []edge{
	{name: "a/Record(ready)", op: devicetest.Record, event: "ready", stream: "copy"},
	{name: "a/Wait(ready)", op: devicetest.Wait, event: "ready", stream: "compute"},
	{name: "b/Record(consumed)", op: devicetest.Record, event: "consumed", stream: "compute"},
	{name: "b/Wait(consumed)", op: devicetest.Wait, event: "consumed", stream: "copy"},
	{name: "c/Record(copied)", op: devicetest.Record, event: "copied", stream: "copy"},
}

// The k-th call of each edge is swallowed in turn, and the contents must show it.
// Copies are slow where compute must wait for them, compute is slow where copies
// must wait for it.
func TestEveryEdgeIsNeeded(t *testing.T) {
	const (
		ms        = time.Millisecond
		batches   = 16
		depth     = 2
		hostSlots = 3
	)
	mutate := func(t *testing.T, in, compute time.Duration, rule devicetest.Rule) (fired int64, err error) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: batches * 4, width: 32}, adversarial(in),
				loader.Options{BatchSize: 4, Shuffle: true, Seed: 7, Workers: 2},
				prefetch.Options{Depth: depth, HostSlots: hostSlots})
			armed := r.tap.Arm(rule)
			err = r.epochs(1, compute)
			fired = armed.Fired()
			r.close()
		})
		return fired, err
	}
	for _, load := range []struct{ in, compute time.Duration }{{6 * ms, 2 * ms}, {2 * ms, 6 * ms}} {
		_, err := mutate(t, load.in, load.compute, devicetest.Rule{Op: devicetest.Record, Event: "no such event"})
		require.NoError(t, err, "unmutated")
	}
	for _, e := range edges {
		// (a) and (c) show where the copy is the slower, (b) where compute is.
		load := struct{ in, compute time.Duration }{6 * ms, 2 * ms}
		if e.name[0] == 'b' {
			load.in, load.compute = 2*ms, 6*ms
		}
		// The last slots are not used again: nothing but Close depends on their events.
		for k := int64(1); k <= batches-depth-hostSlots; k++ {
			t.Run(fmt.Sprintf("%s/k=%d", e.name, k), func(t *testing.T) {
				fired, err := mutate(t, load.in, load.compute,
					devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
				require.EqualValues(t, 1, fired)
				require.Error(t, err, "the contents are right without this call")
			})
		}
	}
}
