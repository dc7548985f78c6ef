package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// eager is a device that has done all work by the time at which the call returns that
// submits it: whatever wait is missing, every byte is right.
type eager struct{ driver.Device }

func (d eager) done(s driver.Stream, err error) error {
	return errors.Join(err, d.SynchronizeStream(context.Background(), s))
}

func (d eager) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	return d.done(s, d.Device.CopyH2D(s, dst, src))
}

func (d eager) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	return d.done(s, d.Device.CopyD2H(s, dst, src))
}

func (d eager) CopyD2D(s driver.Stream, dst, src driver.Address, bytes int64) error {
	return d.done(s, d.Device.CopyD2D(s, dst, src, bytes))
}

func (d eager) Memset(s driver.Stream, dst driver.Address, value byte, bytes int64) error {
	return d.done(s, d.Device.Memset(s, dst, value, bytes))
}

func eagerDevice(t *testing.T, o order.Options) (*order.Checker, *order.Device) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	c := order.New(o)
	return c, c.Wrap(eager{drv})
}

// A race is what a report must say: who was first and who second, and on what.
type race struct{ first, second, memory string }

// Every edge of every pipeline, swallowed in turn, is reported although no byte is
// wrong, and the report names both sides.
func TestAMissingEdgeIsNamedWhereNoByteIsWrong(t *testing.T) {
	const batches = 20
	type pipeline struct {
		name    string
		options prefetch.Options
		run     func(r *rig) error
		races   map[string]race // by edge, in the form op(event) of stream
	}
	data := canary{n: batches, width: 32}
	read := func(r *rig) error { return r.epochs(1, 0) }
	reads := func(first, second string) race { return race{first, second, `slot`} }
	plain := map[string]race{
		"Record(ready) copy":       reads("copy", "compute"),
		"Wait(ready) compute":      reads("copy", "compute"),
		"Record(consumed) compute": reads("compute", "copy"),
		"Wait(consumed) copy":      reads("compute", "copy"),
		"Record(copied) copy":      {"copy", "", "pinned buffer"},
		"SynchronizeEvent(copied)": {"copy", "", "pinned buffer"},
	}
	for _, p := range []pipeline{
		{"plain", prefetch.Options{BatchesPerCopy: 1}, read, plain},
		{"transform", prefetch.Options{BatchesPerCopy: 1, Transform: passOn(cpuSpin, 0, data)}, read, map[string]race{
			"Record(ready) transform":  reads("transform", "compute"),
			"Wait(ready) compute":      reads("transform", "compute"),
			"Record(consumed) compute": reads("compute", "transform"),
			"Wait(consumed) transform": reads("compute", "transform"),
			"Record(copied) copy":      {"copy", "", "pinned buffer"},
			"Record(filled) copy":      {"copy", "transform", "raw slot"},
			"Wait(filled) transform":   {"copy", "transform", "raw slot"},
			"Record(read ) transform":  {"transform", "copy", "raw slot"},
			"Wait(read ) copy":         {"transform", "copy", "raw slot"},
		}},
		// With a choice of slots the one that is taken was asked for, and no Wait is missed.
		{"another stream", prefetch.Options{BatchesPerCopy: 1, Depth: 1}, usedOnOther, map[string]race{
			"Wait(ready) other":      reads("copy", "other"),
			"Record(consumed) other": reads("other", "copy"),
			"Wait(.1) copy":          reads("other", "copy"),
		}},
		{"map", prefetch.Options{BatchesPerCopy: 1}, mapped, map[string]race{
			"Record(written) compute":   {"compute", "download", "result"},
			"Wait(written) download":    {"compute", "download", "result"},
			"Record(fetched) download":  {"download", "", "the host's result"},
			"SynchronizeEvent(fetched)": {"download", "", "the host's result"},
		}},
	} {
		p.options.Memory.HostSlots = 1
		if p.options.Depth == 0 {
			p.options.Depth = 2
		}
		for name, want := range p.races {
			e := parseEdge(t, name)
			fired := int64(0)
			for k := int64(1); k <= batches-4; k++ {
				t.Run(fmt.Sprintf("%s/%s/k=%d", p.name, name, k), func(t *testing.T) {
					checker, drv := eagerDevice(t, order.Options{ListOnly: true})
					r := newRigOn(t, drv, cpuSpin, data, 1, loader.Options{Shuffle: true, Seed: 7, Workers: 2}, p.options)
					armed := r.tap.Arm(devicetest.Rule{Op: e.op, Event: e.event, Stream: e.stream, Nth: k, Swallow: true})
					require.NoError(t, p.run(r), "the contents")
					fired += armed.Fired()
					if e.op == devicetest.SynchronizeEvent && armed.Fired() == 0 {
						r.close() // who waits on the host found the others done before it had to
						return
					}
					require.EqualValues(t, 1, armed.Fired())
					r.tap.Disarm()
					r.close()
					require.NotEmpty(t, checker.Reports())
					report := checker.Reports()[0] // what else there is follows from it
					require.Equal(t, want.first, report.First.Stream, "%v", report)
					require.Equal(t, want.second, report.Second.Stream, "%v", report)
					require.Contains(t, report.Second.Memory, want.memory)
					if want.memory != "pinned buffer" {
						require.Contains(t, report.Second.Memory, "field")
					}
					if e.op == devicetest.Wait { // then there was something to wait for
						require.NotEmpty(t, report.Event)
					}
				})
			}
			require.Positive(t, fired, name)
		}
	}
}

// parseEdge is an edge in the form op(event) stream.
func parseEdge(t *testing.T, s string) edge {
	op, rest, _ := strings.Cut(s, "(")
	event, stream, ok := strings.Cut(rest, ")")
	require.True(t, ok)
	for _, o := range devicetest.Ops() {
		if o.String() == op {
			return edge{name: s, op: o, event: event, stream: strings.TrimSpace(stream)}
		}
	}
	t.Fatalf("no call %q", op)
	return edge{}
}

// usedOnOther reads every batch on a stream that UsedOn was told of, and on no other.
func usedOnOther(r *rig) error {
	other, err := r.dev.NewStream(device.StreamOptions{Name: "other"})
	if err != nil {
		return err
	}
	var all []reading
	for b, err := range r.pf.Batches(context.Background()) {
		if err == nil {
			err = b.UsedOn(other)
		}
		if err != nil {
			return err
		}
		all = append(all, r.readOn(b, other, 0))
	}
	errs := []error{r.dev.Synchronize(context.Background())}
	for _, got := range all {
		errs = append(errs, r.verify(got))
	}
	return errors.Join(append(errs, other.Close())...)
}

// mapped sends every batch back as it is.
func mapped(r *rig) error {
	for res, err := range r.pf.Map(context.Background(), prefetch.Output{Fields: r.data.Fields(), Slots: 2}, r.echo(always(0))) {
		if err == nil {
			err = r.verify(got(res))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A step that submits to a stream of its own, and not to the batch's, is stopped by
// the checker, which says what to do.
func TestAStepOnTheWrongStreamIsTold(t *testing.T) {
	_, drv := eagerDevice(t, order.Options{})
	r := newRigOn(t, drv, cpuSpin, canary{n: 40, width: 32}, 4, loader.Options{Workers: 2},
		prefetch.Options{Streams: prefetch.Streams{Compute: 2, RoundRobin: true}})
	told := 0
	for b, err := range r.pf.Batches(t.Context()) {
		require.NoError(t, err)
		err = r.compute.CopyD2H(r.arena.Bytes()[:8*4], b.Field("index").View)
		if b.Stream() == r.compute {
			require.NoError(t, err)
			continue
		}
		told++
		var report *order.Error
		require.ErrorAs(t, err, &report)
		var deviceError *device.Error
		require.ErrorAs(t, err, &deviceError)
		require.Equal(t, "CopyD2H", deviceError.Op)
		require.Equal(t, "copy", report.First.Stream)
		require.Equal(t, "compute", report.Second.Stream)
		require.Contains(t, report.Second.Place, "unordered_test.go:")
		require.Contains(t, report.Second.Memory, fmt.Sprintf("batch %d of epoch 0", b.Position().Batch))
		require.Contains(t, report.Second.Memory, `field "index"`)
		require.Contains(t, report.Hint, "batch.Stream()")
		require.Contains(t, report.Hint, "batch.UsedOn")
		require.NoError(t, b.UsedOn(r.compute))
		require.NoError(t, r.compute.CopyD2H(r.arena.Bytes()[:8*4], b.Field("index").View))
	}
	require.Equal(t, 5, told)
	r.close()
}

// So is a use of a batch that nobody told the pipeline of and that goes on behind its
// Release: the next upload into the slot is what would overwrite it.
func TestAUseBeyondReleaseIsTold(t *testing.T) {
	_, drv := eagerDevice(t, order.Options{})
	r := newRigOn(t, drv, cpuSpin, canary{n: 40, width: 32}, 4, loader.Options{Workers: 2}, prefetch.Options{Depth: 2})
	other, err := r.dev.NewStream(device.StreamOptions{Name: "other"})
	require.NoError(t, err)
	handed, err := r.dev.NewJunction()
	require.NoError(t, err)
	var failed error
	for b, err := range r.pf.Batches(t.Context()) {
		if failed = err; err != nil {
			break
		}
		require.NoError(t, handed.Fork(b.Stream(), other)) // it may read, but compute does not wait for it
		require.NoError(t, other.CopyD2H(r.arena.Bytes()[:8*4], b.Field("index").View))
	}
	var report *order.Error
	require.ErrorAs(t, failed, &report)
	require.Equal(t, "other", report.First.Stream)
	require.Equal(t, "copy", report.Second.Stream)
	require.Contains(t, report.First.Place, "unordered_test.go:")
	require.Contains(t, report.Hint, "batch.UsedOn")
	require.Contains(t, report.Hint, "a batch's fields end with its loop body, or with Release")
	require.NoError(t, other.Synchronize(t.Context()))
	require.NoError(t, errors.Join(other.Close(), handed.Close()))
	r.close()
}
