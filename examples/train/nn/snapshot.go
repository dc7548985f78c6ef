package nn

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/leat-go/leat/device"
)

// snapshot is what a saved network begins with: little-endian, as all that follows.
type snapshot struct {
	Magic      [8]byte
	Parameters int64 // with the padding between them
	Steps      int64 // submitted so far
	Used       int64 // losses of them that no Report has told
}

var snapshotMagic = [8]byte{'l', 'e', 'a', 't', 'n', 'n', '0', '1'}

// Save waits until s has run all that was submitted to it, and writes what training goes on
// from: parameters, Adam's moments, the number of steps, and the losses since the newest
// Report.
func (net *Network) Save(ctx context.Context, s *device.Stream, w io.Writer) error {
	head := snapshot{snapshotMagic, net.params.Size() / 4, int64(net.steps), int64(net.used)}
	if err := binary.Write(w, binary.LittleEndian, head); err != nil {
		return err
	}
	for _, part := range net.saved() {
		memory := net.hostOf(part)
		if err := s.CopyD2H(memory, part); err != nil {
			return err
		}
		if err := s.Synchronize(ctx); err != nil {
			return err
		}
		if _, err := w.Write(memory); err != nil {
			return err
		}
	}
	sizes := make([]int32, net.used)
	for i := range sizes {
		sizes[i] = int32(net.samples[i])
	}
	return binary.Write(w, binary.LittleEndian, sizes)
}

// Restore waits until s has run all that was submitted to it, and reads what Save has written
// of a network of the same Options. After an error the network is in no state to be trained.
func (net *Network) Restore(ctx context.Context, s *device.Stream, r io.Reader) error {
	var head snapshot
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return fmt.Errorf("nn: reading a saved network: %w", err)
	}
	switch {
	case head.Magic != snapshotMagic:
		return fmt.Errorf("nn: a saved network begins with %q, got %q", snapshotMagic[:], head.Magic[:])
	case head.Parameters != net.params.Size()/4:
		return fmt.Errorf("nn: the saved network has %d parameters, want %d", head.Parameters, net.params.Size()/4)
	case head.Steps < 0 || head.Used < 0 || head.Used > int64(net.opts.ReportSteps):
		return fmt.Errorf("nn: the saved network has losses of %d steps since a Report, want 0 to %d", head.Used, net.opts.ReportSteps)
	}
	net.steps, net.used = int(head.Steps), int(head.Used)
	for _, part := range net.saved() {
		memory := net.hostOf(part)
		if err := s.Synchronize(ctx); err != nil { // the memory is lent to the copy before
			return err
		}
		if _, err := io.ReadFull(r, memory); err != nil {
			return fmt.Errorf("nn: reading a saved network: %w", err)
		}
		if err := s.CopyH2D(part, memory); err != nil {
			return err
		}
	}
	sizes := make([]int32, net.used)
	if err := binary.Read(r, binary.LittleEndian, sizes); err != nil {
		return fmt.Errorf("nn: reading a saved network: %w", err)
	}
	for i, n := range sizes {
		if n < 1 || int(n) > net.opts.MaxBatch {
			return fmt.Errorf("nn: the saved network has a step of %d samples, want 1 to %d", n, net.opts.MaxBatch)
		}
		net.samples[i] = int(n)
	}
	return s.Synchronize(ctx)
}

// saved are the parts of device memory that training goes on from.
func (net *Network) saved() []device.View {
	parts := []device.View{net.params, net.moment1, net.moment2}
	if net.used > 0 {
		parts = append(parts, net.losses.Slice(0, int64(net.used)*4), net.correct.Slice(0, int64(net.used)*4))
	}
	return parts
}

// hostOf is host memory for a part: that of the first parameters, or of the losses.
func (net *Network) hostOf(part device.View) []byte {
	if part.Size() == net.params.Size() {
		return net.initial.Bytes()
	}
	return net.report.Bytes()[:part.Size()]
}
