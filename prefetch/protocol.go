package prefetch

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// The protocol: every Wait and Record that orders a batch's way is in this file,
// and each is needed (protocol_test.go swallows them one by one).
//
//	uploader   upload    copy.Wait(consumed)    (b) compute done → slot may be overwritten
//	                     copy.CopyH2D
//	                     copy.Record(copied)    (c) copy done → host slot may be refilled
//	                     copy.Record(ready)     (a) copy done → compute may read
//	user       handOver  compute.Wait(ready)    (a)
//	           …         the user's work on compute
//	           handBack  compute.Record(consumed) (b)

// upload submits the copy of a filled host slot into a free device slot. The
// uploader owns both until it passes the slot on and gives the host slot to the
// recycler.
func (p *Prefetcher) upload(s *slot, host *pinnedpool.Buffer) error {
	for _, consumed := range s.consumed[:s.consumers] { // P2
		if err := p.copy.Wait(consumed); err != nil { // (b)
			return err
		}
	}
	s.consumers = 0
	if err := p.timeline.copyStarts(p.copy, s); err != nil {
		return err
	}
	if err := p.copyBatch(s, host.Bytes()); err != nil {
		return err
	}
	if err := p.timeline.copyEnds(p.copy, s); err != nil {
		return err
	}
	if err := p.copy.Record(host.Copied()); err != nil { // (c)
		return err
	}
	return p.copy.Record(s.ready) // (a)
}

// handOver makes work submitted to stream from now on wait for the slot's copy.
// It is called when the batch is delivered and no sooner (P3).
func (s *slot) handOver(stream *device.Stream) error {
	if err := stream.Wait(s.ready); err != nil { // (a)
		return err
	}
	s.users = append(s.users, stream)
	return nil
}

// handBack marks in every stream that used the slot where its use ends. Only when
// it has returned may the slot go to the uploader (P1).
func (s *slot) handBack() error {
	for i, stream := range s.users {
		if err := stream.Record(s.consumed[i]); err != nil { // (b)
			return err
		}
		s.consumers = i + 1
	}
	s.users = s.users[:0]
	return nil
}

// copyBatch is one copy for a full batch, whose fields lie packed. A short one
// goes field by field, so that no stale tail travels with it.
func (p *Prefetcher) copyBatch(s *slot, from []byte) error {
	if s.rows == p.layout.BatchSize() {
		return p.copy.CopyH2D(s.memory, from)
	}
	for _, f := range p.layout.Fields() {
		n := int64(s.rows) * f.RowBytes
		if err := p.copy.CopyH2D(s.memory.Slice(f.Offset, n), from[f.Offset:f.Offset+n]); err != nil {
			return err
		}
	}
	return nil
}
