package group_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cuda"
	"github.com/leat-go/leat/device/cuda/latch"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// gpus opens n GPUs, each the first one again where there are fewer, or skips and says why;
// with LEAT_GPU=required it fails without a GPU.
func gpus(t *testing.T, n int) (cards []*card, there int) {
	t.Helper()
	all, err := cuda.List()
	if err == nil && len(all) == 0 {
		err = errors.New("the driver shows none")
	}
	if err != nil {
		if os.Getenv("LEAT_GPU") == "required" {
			t.Fatal("LEAT_GPU=required, and ", err)
		}
		t.Skip("needs a GPU: ", err)
	}
	checker := order.New(order.Options{ListOnly: true})
	t.Cleanup(func() { require.NoError(t, checker.Err()) })
	for i := range n {
		dev, err := cuda.Open(cuda.Options{Index: i % len(all)})
		require.NoError(t, err)
		d := dev.Driver()
		if w, ok := d.(*order.Device); ok { // of the environment's; one is enough
			d = w.Unwrap()
		}
		c := &card{spin: latch.Spin}
		c.open(t, checker.Wrap(d))
		cards = append(cards, c)
	}
	t.Logf("%d GPUs here", len(all))
	return cards, len(all)
}

// Every step once, of the right bytes on every GPU, in all forms of the pipeline.
func TestGPUGroup(t *testing.T) {
	for name, po := range map[string]prefetch.Options{
		"plain":   {},
		"depth 1": {Depth: 1},
		"streams": {Depth: 4, Streams: prefetch.Streams{Compute: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			cards, _ := gpus(t, 2)
			r := newRigOn(t, canary{n: 600, width: 501}, cards, 12, loader.Options{Shuffle: true, Epochs: 2, Last: loader.Pad}, po)
			var steps [][]reading
			for s, err := range r.g.All(t.Context()) {
				require.NoError(t, err)
				steps = append(steps, r.step(s, 200*time.Microsecond))
			}
			require.Len(t, steps, 100)
			r.verify(steps, 0)
			t.Log(r.g.Stats())
			r.close()
		})
	}
}

// Two streams of one GPU are two members.
func TestGPUGroupOfTwoStreams(t *testing.T) {
	cards, _ := gpus(t, 1)
	second := &card{dev: cards[0].dev, arena: cards[0].arena, spin: latch.Spin}
	var err error
	second.stream, err = cards[0].dev.NewStream(device.StreamOptions{Name: "second"})
	require.NoError(t, err)
	ld, err := loader.New(canary{n: 400, width: 64}, 8, loader.Options{Shuffle: true, Last: loader.Drop})
	require.NoError(t, err)
	g, err := group.New([]*device.Stream{cards[0].stream, second.stream}, ld, prefetch.Options{})
	require.NoError(t, err)
	r := &rig{t: t, data: canary{n: 400, width: 64}, ld: ld, cards: []*card{cards[0], second}, g: g}
	var steps [][]reading
	for s, err := range g.Steps(t.Context()) {
		require.NoError(t, err)
		var all []reading
		for i, b := range s.Batches {
			second.used = cards[0].used
			got, err := r.cards[i].read(b, 100*time.Microsecond)
			require.NoError(t, err)
			cards[0].used = r.cards[i].used
			all = append(all, got)
		}
		steps = append(steps, all)
	}
	require.Len(t, steps, 50)
	r.verify(steps, 0)
	require.NoError(t, g.Close())
	require.NoError(t, second.stream.Close())
	cards[0].close(t)
}

// Every result once, in order and as finished, with the second GPU at half the speed.
func TestGPUPool(t *testing.T) {
	for _, asFinished := range []bool{false, true} {
		t.Run(fmt.Sprint("asFinished=", asFinished), func(t *testing.T) {
			cards, there := gpus(t, 2)
			s := newShopOn(t, canary{n: 1200, width: 501}, cards, 4, loader.Options{Shuffle: true, Epochs: 1}, prefetch.Options{},
				speeds(500*time.Microsecond, time.Millisecond))
			out := s.output()
			out.AsFinished = asFinished
			took, by := s.results(out)
			t.Logf("%v, shares %v of %d GPUs, halves would take 150 ms\n%v", took, by, there, s.p.Stats())
			require.NotZero(t, by[0])
			require.NotZero(t, by[1])
			s.close()
		})
	}
}

// faultIn names, in the environment, what a process of its own is to do: a fault ends the
// device for the process that has it.
const faultIn = "LEAT_TEST_GROUP_FAULT"

// A GPU that fails: if the other one goes on, it does all that is left, and each result comes
// once; if not, the range ends and names both. Which of the two it is depends on the machine,
// and on whether the GPUs have each other's memory mapped; the log says.
func TestGPUPoolAfterAFault(t *testing.T) {
	cards, there := gpus(t, 1)
	cards[0].close(t)
	ways := []string{"one GPU opened twice"}
	if there > 1 {
		ways = append(ways, "two GPUs", "two peers")
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), faultIn+"="+way, "LEAT_ORDER=0")
			text, err := cmd.CombinedOutput()
			t.Logf("%s", text)
			require.NoError(t, ctx.Err(), "it hung")
			require.NoError(t, err)
		})
	}
}

// faultOf is the process that has the fault.
func faultOf(way string) error {
	second := cuda.Options{Index: 1}
	if way == "one GPU opened twice" {
		second.Index = 0
	}
	var devs [2]*device.Device
	var streams []*device.Stream
	for i, o := range []cuda.Options{{}, second} {
		dev, err := cuda.Open(o)
		if err != nil {
			return err
		}
		s, err := dev.NewStream(device.StreamOptions{Name: "compute"})
		if err != nil {
			return err
		}
		devs[i], streams = dev, append(streams, s)
	}
	if way == "two peers" {
		if err := touch(devs, streams[1]); err != nil {
			return err
		}
	}
	const steps, faulty = 200, 40
	ld, err := loader.New(canary{n: 4 * steps, width: 500}, 4, loader.Options{Shuffle: true, Epochs: 1})
	if err != nil {
		return err
	}
	p, err := group.NewPool(streams, ld, prefetch.Options{})
	if err != nil {
		return err
	}
	work := func(i int, b prefetch.Batch, out prefetch.Fields) error {
		err := errors.Join(latch.Spin(b.Stream(), 200*time.Microsecond),
			b.Stream().CopyD2D(out.Field("index").View, b.Field("index").View))
		if i == 1 && b.Position().Batch >= faulty {
			err = errors.Join(err, latch.Fault(b.Stream()))
		}
		return err
	}
	next := 0
	var failed error
	for r, err := range p.Map(context.Background(), prefetch.Output{Fields: canary{}.Fields()[:1]}, work) {
		if failed = err; err != nil {
			break
		}
		if r.Position().Batch != next {
			return fmt.Errorf("result %d comes where %d should", r.Position().Batch, next)
		}
		next++
	}
	lost := p.Lost()
	fmt.Printf("%s: %d of %d results, the error %v, lost %v\n", way, next, steps, failed, lost)
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	select {
	case err := <-closed:
		fmt.Println("Close:", err)
	case <-time.After(20 * time.Second):
		return errors.New("Close hangs")
	}
	switch {
	case len(lost) == 0:
		return errors.New("nobody noticed the fault")
	case len(lost) == 1 && (next != steps || failed != nil):
		return errors.New("the other GPU goes on, and not all results came")
	case len(lost) == 2 && failed == nil:
		return errors.New("no GPU goes on, and there is no error")
	}
	return nil
}

// touch copies from the first GPU to the second, which sets up the way between them.
func touch(devs [2]*device.Device, s *device.Stream) error {
	from, err := devs[0].Alloc(1 << 20)
	if err != nil {
		return err
	}
	to, err := devs[1].Alloc(1 << 20)
	if err != nil {
		return err
	}
	if err := errors.Join(s.CopyPeer(to.View(), from.View()), s.Synchronize(context.Background())); err != nil {
		return err
	}
	fmt.Println(devs[1].Notes())
	return errors.Join(from.Close(), to.Close())
}
