package prefetch_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// textRig is a device on which batches of text are read back.
type textRig struct {
	*testing.T
	dev     *device.Device
	compute *device.Stream
	arena   *device.HostBuffer
	used    int64
	spin    func(*device.Stream, time.Duration) error // keeps a stream busy
}

func newTextRig(t *testing.T, co cpu.Options) *textRig {
	if co.Adversary == nil {
		co.Adversary = &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Seed: 1}
	}
	drv, err := cpu.New(co)
	require.NoError(t, err)
	return newTextRigOn(t, drv, cpuSpin)
}

func newTextRigOn(t *testing.T, drv driver.Device, spin func(*device.Stream, time.Duration) error) *textRig {
	_, watched := watch(t, drv)
	r := &textRig{T: t, dev: device.New(watched), spin: spin}
	var err error
	r.compute, err = r.dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	r.arena, err = r.dev.AllocHost(8<<20, device.HostOptions{})
	require.NoError(t, err)
	return r
}

func (r *textRig) close() {
	require.NoError(r, r.dev.Synchronize(r.Context()))
	require.NoError(r, r.arena.Close())
	require.NoError(r, r.compute.Close())
	require.NoError(r, r.dev.Close())
}

// read submits copies of all that the batch has, behind work that takes a while.
func (r *textRig) read(b prefetch.Batch) map[string]value {
	require.NoError(r, r.spin(b.Stream(), 3*time.Millisecond))
	got := make(map[string]value)
	for _, f := range b.Fields() {
		to := r.arena.Bytes()[r.used:][:f.View.Size():f.View.Size()]
		r.used += (f.View.Size() + 63) &^ 63
		require.NoError(r, b.Stream().CopyD2H(to, f.View))
		got[f.Name] = value{slices.Clone(f.Shape), to}
	}
	return got
}

// own copies what a batch, or a result, has in host memory.
func own(fields []prefetch.Field) map[string]value {
	got := make(map[string]value)
	for _, f := range fields {
		got[f.Name] = value{slices.Clone(f.Shape), slices.Clone(f.Bytes)}
	}
	return got
}

// copied is a transform that copies tokens and boxes to fields of other names, with all
// that is added, and leaves out the rest.
func copied(s *text) *prefetch.Transform {
	out := []loader.Field{s.fields[4].Clone(), s.fields[0], s.fields[1].Clone()}
	out[0].Name, out[0].Ragged.Like = "boxes 2", "boxes"
	out[2].Name, out[2].Ragged = "tokens 2", &loader.Ragged{Like: "tokens", Length: "lengths 2", Mask: "mask 2"}
	scratch := s.fields[3].Clone()
	scratch.Name, scratch.Ragged = "scratch", &loader.Ragged{Like: "packed", Offsets: "unused"}
	return &prefetch.Transform{In: s.fields, Out: out, Scratch: []loader.Field{scratch}, Apply: func(st *device.Stream, out, in prefetch.Fields) error {
		between := out.Scratch("scratch")
		return errors.Join(
			st.CopyD2D(between.View, in.Field("packed").View), // they are equally long
			out.Copy(st, 0, in, 4, 1), out.Copy(st, 1, in, 0, 2))
	}}
}

// checkCopied undoes copied.
func (s *text) checkCopied(t require.TestingT, got map[string]value) {
	want := s.batch(dtype.As[int64](slices.Clone(got["index"].bytes)))
	require.Len(t, got, 5)
	for _, name := range []string{"boxes", "tokens", "lengths", "mask"} {
		require.Equal(t, want[name].shape, got[name+" 2"].shape, name)
		require.Equal(t, fmt.Sprint(want[name].bytes), fmt.Sprint(got[name+" 2"].bytes), name)
	}
}

// converted is a chain whose operations keep raggedness.
func converted(t require.TestingT, s *text) *prefetch.Transform {
	transform, err := chain.New(s.fields,
		chain.Convert("tokens", dtype.Float32), chain.Convert("tokens", dtype.Float16), chain.Convert("tokens", dtype.Uint8),
		chain.OneHot("packed", 2), chain.Normalize("label", chain.NormalizeOptions{}))
	require.NoError(t, err)
	return transform
}

// checkConverted undoes converted.
func (s *text) checkConverted(t require.TestingT, got map[string]value) {
	packed := got["packed"]
	require.Equal(t, 2, packed.shape[len(packed.shape)-1])
	var tokens []byte
	for i, ones := 0, dtype.As[float32](packed.bytes); i < len(ones); i += 2 {
		require.Zero(t, ones[i], "a token of 0")
		tokens = append(tokens, byte(ones[i+1]))
	}
	label := got["label"]
	var bytes []byte
	for _, v := range dtype.As[float32](label.bytes) {
		bytes = append(bytes, byte(math.Round(float64(v)*255)))
	}
	want := s.batch(dtype.As[int64](slices.Clone(got["index"].bytes)))
	isOne := make([]byte, len(want["packed"].bytes))
	for i, token := range want["packed"].bytes {
		if token == 1 {
			isOne[i] = 1
		}
	}
	require.Equal(t, fmt.Sprint(isOne), fmt.Sprint(append([]byte{}, tokens...)))
	got["packed"] = value{packed.shape[:len(packed.shape)-1], want["packed"].bytes}
	got["label"] = value{label.shape, bytes}
	s.check(t, got)
}

// drawOptions draws a pipeline, which is host's or a device's.
func drawOptions(t *rapid.T, samples int) (batch int, lo loader.Options, po prefetch.Options) {
	batch = rapid.IntRange(1, 7).Draw(t, "batch")
	ranks := rapid.IntRange(1, 3).Draw(t, "ranks")
	lo = loader.Options{Epochs: 2, Shuffle: rapid.Bool().Draw(t, "shuffle"), Workers: rapid.IntRange(1, 3).Draw(t, "workers"),
		Last:  rapid.SampledFrom([]loader.LastPolicy{loader.Pad, loader.Exact}).Draw(t, "last"),
		Shard: loader.Shard{Index: rapid.IntRange(0, ranks-1).Draw(t, "rank"), Count: ranks}}
	po = prefetch.Options{Depth: rapid.IntRange(1, 3).Draw(t, "depth"), BatchesPerCopy: rapid.IntRange(1, 3).Draw(t, "batches per copy"),
		Streams: prefetch.Streams{Compute: rapid.IntRange(1, 2).Draw(t, "compute streams")},
		Memory:  prefetch.Memory{HostSlots: rapid.IntRange(1, 5).Draw(t, "host slots")}}
	return batch, lo, po
}

// A ragged batch is what plain slices make of its samples, on a device as unkind as the
// rules allow and on the host, as it comes and through transforms and a Map: contents,
// lengths, masks and offsets.
func TestRaggedBatchesAreWhatPlainSlicesMake(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawText(rt)
		batch, lo, po := drawOptions(rt, s.Len())
		check := s.check
		switch rapid.SampledFrom([]string{"none", "copied", "converted"}).Draw(rt, "transform") {
		case "copied":
			po.Transform, check = copied(s), s.checkCopied
		case "converted":
			po.Transform, check = converted(rt, s), s.checkConverted
		}
		way := rapid.SampledFrom([]string{"device", "map", "host"}).Draw(rt, "way")
		ld, err := loader.New(s, batch, lo)
		require.NoError(rt, err)
		synctest.Test(t, func(t *testing.T) {
			switch way {
			case "device":
				readText(t, ld, po, check)
			case "map":
				mapText(t, ld, po, s, check)
			case "host":
				po.Depth, po.BatchesPerCopy, po.Streams = max(po.Depth, 1), 0, prefetch.Streams{}
				readHostText(t, ld, po, check)
			}
		})
	})
}

func readText(t *testing.T, ld *loader.Loader, po prefetch.Options, check func(require.TestingT, map[string]value)) {
	newTextRig(t, cpu.Options{Model: modelled(time.Millisecond)}).readText(ld, po, check)
}

func (r *textRig) readText(ld *loader.Loader, po prefetch.Options, check func(require.TestingT, map[string]value)) {
	t := r.T
	pf, err := prefetch.New(r.compute, ld, po)
	require.NoError(t, err)
	var all []map[string]value
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		all = append(all, r.read(b))
	}
	require.NoError(t, r.dev.Synchronize(t.Context()))
	for _, got := range all {
		check(t, got)
	}
	n, _ := ld.Batches()
	require.Len(t, all, 2*n)
	require.NoError(t, pf.Close())
	r.close()
}

func readHostText(t *testing.T, ld *loader.Loader, po prefetch.Options, check func(require.TestingT, map[string]value)) {
	pf, err := prefetch.NewHost(ld, po)
	require.NoError(t, err)
	batches := 0
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		check(t, own(b.Fields()))
		batches++
	}
	n, _ := ld.Batches()
	require.Equal(t, 2*n, batches)
	require.NoError(t, pf.Close())
}

func mapText(t *testing.T, ld *loader.Loader, po prefetch.Options, s *text, check func(require.TestingT, map[string]value)) {
	newTextRig(t, cpu.Options{Model: modelled(time.Millisecond)}).mapText(ld, po, s, check)
}

func (r *textRig) mapText(ld *loader.Loader, po prefetch.Options, s *text, check func(require.TestingT, map[string]value)) {
	t := r.T
	pf, err := prefetch.New(r.compute, ld, po)
	require.NoError(t, err)
	fields := s.fields
	if po.Transform != nil {
		fields = po.Transform.Out
	}
	back := make([]loader.Field, len(fields)) // in reverse, with names of their own
	for i, f := range fields {
		f = f.Clone()
		if f.Ragged != nil {
			f.Ragged.Pad, f.Ragged.Like = 0, f.Name
		}
		back[len(fields)-1-i] = f
	}
	var names []string
	for _, f := range pf.Plan().Fields {
		names = append(names, f.Name)
	}
	if delivered := pf.Plan().Delivered; delivered != nil {
		names = nil
		for _, f := range delivered {
			names = append(names, f.Name)
		}
	}
	step := func(b prefetch.Batch, out prefetch.Fields) error {
		for _, f := range fields {
			if err := b.Stream().CopyD2D(out.Field(f.Name).View, b.Field(f.Name).View); err != nil {
				return err
			}
		}
		return nil
	}
	results := 0
	for range 2 {
		for result, err := range pf.Map(t.Context(), prefetch.Output{Fields: back, Slots: 2}, step) {
			require.NoError(t, err)
			got := make(map[string]value)
			for _, name := range names {
				f := result.Field(name)
				got[name] = value{slices.Clone(f.Shape), slices.Clone(f.Bytes)}
			}
			check(t, got)
			results++
		}
	}
	n, _ := ld.Batches()
	require.Equal(t, 2*n, results)
	require.NoError(t, pf.Close())
	r.close()
}

// What crosses the bus is the bytes in use: those of the fields of one size, and of each
// ragged one as many as the batch's own longest sample makes. What Stats counts is that.
func TestOnlyTheBytesInUseCrossTheBus(t *testing.T) {
	const maximum, mean, batch, batches = 2048, 300, 32, 40
	fields := []loader.Field{
		{Name: "index", DType: dtype.Int64},
		{Name: "tokens", DType: dtype.Uint16, Shape: []int{maximum}, Ragged: &loader.Ragged{Multiple: 8, Length: "length"}},
	}
	for _, perCopy := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := newText(0, fields, 1, 0)
			ideal := 0 // padded to the longest of each batch
			for i := range batch * batches {
				n := min(int(-mean*math.Log(1-float64((i*7919)%10007)/10007)), maximum) // as long as text is
				s.values = append(s.values, [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(i)), make([]byte, 2*n)})
			}
			for first := 0; first < len(s.values); first += batch {
				longest := 0
				for _, values := range s.values[first : first+batch] {
					longest = max(longest, len(values[1]))
				}
				ideal += batch * longest
			}
			var crossed atomic.Int64
			r := newTextRig(t, cpu.Options{Model: &cpu.Model{CopyTime: func(way cpu.Direction, bytes int64) time.Duration {
				crossed.Add(bytes)
				return time.Duration(bytes) // a nanosecond each
			}}})
			ld, err := loader.New(s, batch, loader.Options{Epochs: 1, Workers: 2})
			require.NoError(t, err)
			pf, err := prefetch.New(r.compute, ld, prefetch.Options{BatchesPerCopy: perCopy})
			require.NoError(t, err)
			start := time.Now()
			for b, err := range pf.All(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, b.Field("tokens").Shape[1], int(b.Field("tokens").View.Size())/2/batch)
			}
			require.NoError(t, r.dev.Synchronize(t.Context()))
			require.Equal(t, time.Duration(crossed.Load()), time.Since(start), "the copies take the time of the bytes in use")
			require.Equal(t, crossed.Load(), pf.Stats().Bytes)
			t.Logf("%d bytes crossed, %d are in use, %d at the maximum", crossed.Load(), ideal, batches*int(ld.Layout().Size()))
			require.InDelta(t, ideal, crossed.Load(), 0.05*float64(ideal))
			require.NoError(t, pf.Close())
			r.close()
		})
	}
}

// A clone of a ragged batch is that batch's, whatever comes into its slot.
func TestCloneOfARaggedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newText(20, raggedFields(30, 4), 5, 0.2)
		ld, err := loader.New(s, 3, loader.Options{Epochs: 1, Workers: 2})
		require.NoError(t, err)
		r := newTextRig(t, cpu.Options{Model: modelled(time.Millisecond)})
		pf, err := prefetch.New(r.compute, ld, prefetch.Options{Depth: 1})
		require.NoError(t, err)
		var clones []*prefetch.Clone
		for b, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			c, err := b.Clone()
			require.NoError(t, err)
			clones = append(clones, c)
		}
		var all []map[string]value
		for _, c := range clones {
			got := make(map[string]value)
			for _, f := range ld.Layout().Fields() {
				of := c.Field(f.Name)
				to := r.arena.Bytes()[r.used:][:of.View.Size():of.View.Size()]
				r.used += (of.View.Size() + 63) &^ 63
				require.NoError(t, r.compute.CopyD2H(to, of.View))
				got[f.Name] = value{of.Shape, to}
			}
			all = append(all, got)
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for i, got := range all {
			s.check(t, got)
			require.NoError(t, clones[i].Close())
		}
		require.NoError(t, pf.Close())
		r.close()
	})
}

// A column of a ragged field is what Shape says, and no more.
func TestColumnOfARaggedField(t *testing.T) {
	s := newText(7, raggedFields(30, 1), 6, 0)
	ld, err := loader.New(s, 3, loader.Options{Epochs: 1})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	first := 0
	for b, err := range pf.All(t.Context()) {
		require.NoError(t, err)
		want := s.batch([]int64{int64(first), int64(first + 1), int64(first + 2)}[:b.Len()])
		first += b.Len()
		tokens, err := prefetch.Column[uint8](b, "tokens")
		require.NoError(t, err)
		require.Equal(t, want["tokens"].bytes, tokens)
		offsets, err := prefetch.Column[int32](b, "offsets")
		require.NoError(t, err)
		require.Len(t, offsets, b.Len()+1)
		packed, err := prefetch.Column[uint8](b, "packed")
		require.NoError(t, err)
		require.Len(t, packed, int(offsets[b.Len()]))
		require.Equal(t, len(packed), cap(packed))
	}
	require.NoError(t, pf.Close())
}

// What is computed of ragged fields has the lengths of one of them, or New and Map say what
// it lacks.
func TestRaggedOutputsThatFollowNothing(t *testing.T) {
	in := raggedFields(30, 4)
	of := func(name string, maximum int, r loader.Ragged) loader.Field {
		return loader.Field{Name: name, DType: dtype.Uint8, Shape: []int{maximum}, Ragged: &r}
	}
	for name, c := range map[string]struct {
		out  loader.Field
		want string // empty where it is right
	}{
		"by its name":         {of("tokens", 30, loader.Ragged{}), ""},
		"by another":          {of("x", 30, loader.Ragged{Like: "tokens", Multiple: 4, Mask: "m"}), ""},
		"packed":              {of("x", 30, loader.Ragged{Like: "packed", Offsets: "o"}), ""},
		"a multiple of 1":     {of("boxes", 15, loader.Ragged{Multiple: 1}), ""},
		"nothing":             {of("x", 30, loader.Ragged{}), "lengths of a ragged field of its input"},
		"one of one size":     {of("x", 30, loader.Ragged{Like: "label"}), "lengths of a ragged field of its input"},
		"an added one":        {of("x", 30, loader.Ragged{Like: "mask"}), "lengths of a ragged field of its input"},
		"another maximum":     {of("tokens", 31, loader.Ragged{}), "the maximum of tokens uint8[≤30]"},
		"another multiple":    {of("tokens", 30, loader.Ragged{Multiple: 8}), "a Multiple of 0, or 4, that of tokens"},
		"packed from padded":  {of("tokens", 30, loader.Ragged{Offsets: "o"}), "Offsets only if that has them"},
		"padded from packed":  {of("packed", 30, loader.Ragged{}), "Offsets only if that has them"},
		"lengths of no field": {of("packed", 30, loader.Ragged{Offsets: "o", Length: "n"}), "a name that is given to packed"},
		"a mask that is not":  {of("boxes", 15, loader.Ragged{Mask: "m"}), "a name that is given to boxes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newText(4, in, 1, 0)
			ld, err := loader.New(s, 2, loader.Options{})
			require.NoError(t, err)
			o := prefetch.Options{Transform: &prefetch.Transform{Out: []loader.Field{c.out}, Apply: func(st *device.Stream, out, in prefetch.Fields) error {
				return st.Memset(out.Field(c.out.Name).View, 1)
			}}}
			pf, err := prefetch.NewHost(ld, o)
			if c.want == "" {
				require.NoError(t, err)
				for b, err := range pf.Batches(t.Context()) {
					require.NoError(t, err)
					require.Len(t, b.Fields(), len(pf.Plan().Delivered))
				}
				require.NoError(t, pf.Close())
				return
			}
			var wrong *prefetch.OptionError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "Transform.Out", wrong.Option)
			require.ErrorContains(t, err, c.want)

			r := newTextRig(t, cpu.Options{})
			pf, err = prefetch.New(r.compute, ld, prefetch.Options{})
			require.NoError(t, err)
			for _, err := range pf.Map(t.Context(), prefetch.Output{Fields: []loader.Field{c.out}}, func(prefetch.Batch, prefetch.Fields) error { return nil }) {
				require.ErrorAs(t, err, &wrong)
				require.Equal(t, "Output.Fields", wrong.Option)
				require.ErrorContains(t, err, c.want)
			}
			require.NoError(t, pf.Close())
			r.close()
		})
	}
}

// A transform that was made for other lengths is refused.
func TestATransformForOtherRaggedFields(t *testing.T) {
	s := newText(4, raggedFields(30, 4), 1, 0)
	ld, err := loader.New(s, 2, loader.Options{})
	require.NoError(t, err)
	for _, change := range []func(f *loader.Field){
		func(f *loader.Field) { f.Ragged = nil },
		func(f *loader.Field) { f.Ragged.Mask = "" },
		func(f *loader.Field) { f.Shape[0]++ },
	} {
		transform := copied(s)
		transform.In = nil
		for _, f := range s.fields {
			transform.In = append(transform.In, f.Clone())
		}
		change(&transform.In[1])
		_, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
		require.ErrorContains(t, err, "Transform.In has the field tokens")
	}
}

// hostAllocs counts how often a device is asked for host memory.
type hostAllocs struct {
	driver.Device
	n int
}

func (h *hostAllocs) AllocHost(bytes int64, c driver.HostConfig) ([]byte, error) {
	h.n++
	return h.Device.AllocHost(bytes, c)
}

// NaN differs from itself, but a field that is padded with it is the one that it was
// declared as: for a transform, and for a Map, which uses the last one's results again.
func TestAPaddingOfNaN(t *testing.T) {
	field := loader.Field{Name: "x", DType: dtype.Float32, Shape: []int{6}, Ragged: &loader.Ragged{Pad: math.NaN()}}
	ds := loader.FromFunc(8, []loader.Field{field}, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", make([]float32, i%6)...)
	})
	transform, err := chain.New(ds.Fields(), chain.Convert("x", dtype.Float16))
	require.NoError(t, err)
	ld, err := loader.New(ds, 2, loader.Options{})
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: transform})
	require.NoError(t, err)
	require.NoError(t, pf.Close())

	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	allocs := &hostAllocs{Device: drv}
	r := newTextRigOn(t, allocs, cpuSpin)
	pf, err = prefetch.New(r.compute, ld, prefetch.Options{})
	require.NoError(t, err)
	before := allocs.n
	for range 3 {
		step := func(b prefetch.Batch, out prefetch.Fields) error {
			return b.Stream().CopyD2D(out.Field("x").View, b.Field("x").View)
		}
		for _, err := range pf.Map(t.Context(), prefetch.Output{Fields: ds.Fields(), Slots: 1}, step) {
			require.NoError(t, err)
		}
	}
	require.Equal(t, before+1, allocs.n, "the results' memory")
	require.NoError(t, pf.Close())
	r.close()
}

// A ragged pipeline allocates nothing for a batch.
func TestRaggedBatchesAllocateNothing(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts its own allocations")
	}
	s := newText(512, raggedFields(64, 8), 1, 0.1)
	again := func(ctx context.Context, i int, row *loader.Row) error { return s.Read(ctx, i%s.Len(), row) }
	ld, err := loader.New(loader.FromFunc(1<<20, s.fields, again), 4, loader.Options{Workers: 1})
	require.NoError(t, err)
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	dev := device.New(drv)
	compute, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	transform := copied(s)
	transform.Apply = func(st *device.Stream, out, in prefetch.Fields) error { // without errors.Join
		if err := out.Copy(st, 0, in, 4, 1); err != nil {
			return err
		}
		return out.Copy(st, 1, in, 0, 2)
	}
	pf, err := prefetch.New(compute, ld, prefetch.Options{Transform: transform, BatchesPerCopy: 2})
	require.NoError(t, err)
	const warmUp, batches = 500, 3000
	var made func() []string
	n := 0
	for b, err := range pf.Batches(t.Context()) {
		if err != nil || b.Field("tokens 2").Shape[0] != 4 {
			t.Fatal(err)
		}
		if n++; n == warmUp {
			made = watchAllocations(t)
		}
		if n == warmUp+batches {
			require.Empty(t, made()) // before the loop's end, which has its own
			break
		}
	}
	require.NoError(t, pf.Close())
	require.NoError(t, compute.Close())
	require.NoError(t, dev.Close())
}
