package probe

import (
	"context"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
)

// callsInARun is fewer than a stream holds before submitting blocks.
const callsInARun = 200

// measureCalls times the calls of a pipeline on the goroutine that makes them.
func (p *probe) measureCalls(ctx context.Context, r *rig.Rig) error {
	const small = 4 << 10
	s, memory, host := r.Stream("calls"), r.Alloc(small), r.AllocHost(small, device.HostOptions{})
	e := r.Event("mark")
	if r.Err() != nil {
		return r.Err()
	}
	if err := s.Record(e); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"record an event", func() error { return s.Record(e) }},
		{"wait for an event", func() error { return s.Wait(e) }},
		{"query an event", func() error { _, err := e.Done(); return err }},
		{"copy 4 KiB", func() error { return s.CopyH2D(memory, host) }},
		{"launch a kernel", func() error { return kernels.Fill(s, memory.Slice(0, 4), dtype.Float32, 1) }},
	} {
		took, err := p.timeCall(ctx, s, c.call)
		if err != nil {
			return err
		}
		p.Calls = append(p.Calls, Call{Name: c.name, Time: took})
	}
	return nil
}

func (p *probe) timeCall(ctx context.Context, s *device.Stream, call func() error) (time.Duration, error) {
	var took []time.Duration
	for range p.Runs + 1 { // the first warms up
		start := time.Now()
		if err := measure.Repeat(callsInARun, call)(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start)/callsInARun)
		if err := s.Synchronize(ctx); err != nil {
			return 0, err
		}
	}
	return measure.Median(took[1:]), nil
}
