package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/internal/usercode"
	"github.com/leat-go/leat/loader"
)

// A Transform is work that the device does on every batch between its upload and
// its delivery, on a stream of its own: what crosses the bus is small, uint8
// images, and what compute sees is ready, normalised float16.
//
// For a host consumer the same work runs in its Go version.
type Transform struct {
	// In are the fields that Apply was made for. New refuses a loader of others, so
	// that no shape is read as another of the same size. Nil means that Apply looks
	// at the fields that it gets.
	In []loader.Field
	// Out are the fields of the batches that are delivered. A ragged one has the lengths of
	// the ragged field of its name among the loader's, or of the one that Ragged.Like names:
	// its maximum, and whether it is packed, are those of that one, and its Multiple too or
	// 0. What the loader added for that, lengths, a mask or offsets, is copied to what the
	// field's own Ragged names. Its Pad has no meaning: Apply computes the padding too.
	Out []loader.Field
	// Scratch are fields for intermediate results, ragged as those of Out; see
	// Fields.Scratch.
	Scratch []loader.Field
	// Apply submits to s the work that reads in and overwrites out, both of in.Len
	// rows and out in every field: one that it never asks for is a
	// *loader.UnwrittenError. It waits for nothing and keeps neither. The uploader
	// calls it, one batch after the other. An error ends the run and is delivered
	// behind the batches before it.
	Apply func(s *device.Stream, out, in Fields) error
}

// validate adds every mistake in t, for a loader's batch size.
func (t *Transform) validate(c *checks, batch int) {
	c.that(t.Apply != nil, "Transform.Apply", "nil", "a function")
	c.fields("Transform.Out", t.Out, batch)
	if len(t.Scratch) > 0 {
		c.fields("Transform.Scratch", t.Scratch, batch)
	}
}

// fields checks fields of which there is to be at least one.
func (c *checks) fields(option string, fields []loader.Field, batch int) {
	c.that(len(fields) > 0, option, "empty", "a field or more")
	if _, err := loader.NewLayout(fields, batch); len(fields) > 0 && err != nil {
		*c = append(*c, &OptionError{Option: option, Value: fields, Want: "a layout", Err: err})
	}
}

// fits says where the fields that a loader fills are not those that t takes.
func (t *Transform) fits(l *loader.Layout) error {
	if t.In == nil {
		return nil
	}
	var errs []error
	filled := l.Written()
	known := make([]bool, len(filled))
	for _, want := range t.In {
		i, ok := l.Lookup(want.Name)
		if !ok || i >= len(filled) {
			errs = append(errs, fmt.Errorf("Transform.In has the field %v, the loader has none of that name", want))
			continue
		}
		known[i] = true
		if got := filled[i].Field; !got.Equal(want) {
			errs = append(errs, fmt.Errorf("Transform.In has the field %v, the loader fills %v", want, got))
		}
	}
	for i, got := range filled {
		if !known[i] {
			errs = append(errs, fmt.Errorf("the loader fills the field %v, Transform.In has none of that name", got.Field))
		}
	}
	return errors.Join(errs...)
}

// transforming is a Transform at work: one more stage, which reads the slots that copies
// fill, raw, and writes the slots that compute reads.
type transforming struct {
	Transform
	sizes   *sizes
	seed    uint64
	stream  *device.Stream
	raws    []*slots.Slot // none for a host consumer, whose pinned buffers are raw
	nextRaw int
	asked   []bool // which fields of the batch coming out Apply has asked for
	// scratch is nil without Transform.Scratch.
	scratch *scratch
	visit   usercode.Visit
}

// newTransforming makes what t needs on dev. What it could make before an error is in it,
// for release.
func newTransforming(dev *device.Device, t Transform, z *sizes, seed uint64, raw bool) (*transforming, error) {
	made := &transforming{Transform: t, sizes: z, seed: seed, asked: make([]bool, len(z.out.Fields()))}
	var err error
	if made.stream, err = dev.NewStream(device.StreamOptions{Name: "transform"}); err != nil {
		return made, err
	}
	if z.scratch != nil {
		if made.scratch, err = newScratch(dev, z.scratch); err != nil {
			return made, err
		}
	}
	for i := 0; raw && i < raws; i++ {
		s, err := slots.New(dev, slots.Options{ID: i, Bytes: z.stride * int64(z.options.BatchesPerCopy), Reads: 1,
			Filled: device.EventOptions{Name: "filled"}, Read: device.EventOptions{Name: "read"}})
		made.raws = append(made.raws, s)
		if err != nil {
			return made, err
		}
		s.Describe(describeFields(fmt.Sprintf("the transform's raw slot %d", i), z.in))
	}
	return made, nil
}

// next is the raw slot whose turn it is. Two in turn suffice without asking whether it is
// free: the copy waits for that on the device.
func (t *transforming) next() *slots.Slot {
	s := t.raws[t.nextRaw]
	t.nextRaw = (t.nextRaw + 1) % len(t.raws)
	return s
}

// apply submits the transform of so many batches, which lie in raw one behind the other,
// into the windows on to, and counts in done those that it was done to.
func (t *transforming) apply(to device.View, windows []*window, raw device.View, done *int) error {
	z := t.sizes
	for i, w := range windows {
		in := Fields{extent: w.in, at: w.position(), seed: t.seed, memory: raw.Slice(int64(i)*z.stride, z.in.Size())}
		out := in
		out.extent, out.scratch = w.out, t.scratch
		if t.scratch != nil {
			t.scratch.extent.follow(w.in, z.scratchLike)
		}
		out.memory = to.Slice(int64(i)*z.outStride, z.out.Size())
		clear(t.asked)
		out.asked = t.asked
		if err := t.poison(out); err != nil {
			return err
		}
		if err := out.copyAdded(t.stream, func(field int) device.View { return in.span(field, 1) }, z.like); err != nil {
			return err
		}
		err := t.visit.Of(usercode.Place(in.at), func() error { return t.Apply(t.stream, out, in) })
		if err == nil {
			err = out.unwritten()
		}
		if err != nil {
			return &StageError{Stage: inTransform, Position: in.at, Err: err}
		}
		*done = i + 1
	}
	return nil
}

// rest waits until all raw memory is read, and all that was made of it written: also
// where the batch was discarded and nobody waits for it.
func (t *transforming) rest(ctx context.Context) error {
	for _, s := range t.raws {
		if err := s.Rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *transforming) release() error {
	var errs []error
	for _, s := range t.raws {
		errs = append(errs, s.Close())
	}
	if t.scratch != nil {
		errs = append(errs, t.scratch.buffer.Close())
	}
	if t.stream != nil {
		errs = append(errs, t.stream.Close())
	}
	return errors.Join(errs...)
}
