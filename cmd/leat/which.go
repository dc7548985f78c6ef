package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/leat-go/leat/cmd/leat/internal/found"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/statefile"
)

const aboutWhich = `
leat which STATE PATH prints which samples are in the batches behind a state that was
saved, or before it, and where each of them lies. No data is read for that: the order is a
function of the seed, the epoch and the number of samples.

	leat which state.json train.npy -batch 256
	leat which state.json 'shards/*.tar' -batch 32 -ranks 8 -steps 4
	leat which state.json train.npy -batch 256 -back -steps 1     the batch before the state

The state doesn't say how large batches are and how many ranks there were, so -batch and
-ranks must be those of the run. A state of a dataset that was filtered, split or mixed is
of other numbers of samples than its files have: use Loader.Which in the program.`

func runWhich(ctx context.Context, args []string, out io.Writer) (err error) {
	var at opening
	f := newFlags("which", aboutWhich, out)
	at.define(f)
	batch := f.Int("batch", 32, "batch `size` of one rank")
	ranks := f.Int("ranks", 1, "`number` of ranks")
	steps := f.Int("steps", 2, "`number` of batches")
	last := f.String("last", "", "what becomes of the last batch: keep, drop, pad or exact; empty means keep, and drop of several ranks")
	back := f.Bool("back", false, "the batches before the state, not those behind it")
	paths, err := parseArgs(f, args, "STATE", "PATH")
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	for _, n := range []struct {
		name string
		v    int
	}{{"batch", *batch}, {"ranks", *ranks}, {"steps", *steps}} {
		if n.v < 1 {
			err = errors.Join(err, fmt.Errorf("-%s is %d, want 1 or more", n.name, n.v))
		}
	}
	policy, wrong := lastPolicy(*last, *ranks)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	state, err := statefile.Load(paths[0])
	if err != nil {
		return err
	}
	if at.Window == 0 {
		at.Window = window(state)
	}
	set, err := at.open(ctx, paths[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	ld, at0, err := placed(set, state, *batch, *ranks, policy)
	if err != nil {
		return err
	}
	span := before(ld, at0, *steps, *batch**ranks)
	if !*back {
		if span, err = ld.Span(at0, 0, *steps); err != nil {
			return err
		}
	}
	samples, err := ld.Which(span)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "epoch %d, %d of %d samples delivered\n", state.Epoch, state.Position, state.Samples)
	for s := range samples {
		printSample(w, s, *ranks)
	}
	return w.Flush()
}

func lastPolicy(name string, ranks int) (loader.LastPolicy, error) {
	switch {
	case name == "keep", name == "" && ranks == 1:
		return loader.Keep, nil
	case name == "drop", name == "":
		return loader.Drop, nil
	case name == "pad":
		return loader.Pad, nil
	case name == "exact":
		return loader.Exact, nil
	}
	return 0, fmt.Errorf("-last is %q, want keep, drop, pad or exact", name)
}

// window is the length of the windows of tokens that a state is of, 0 if it is of none.
func window(s loader.State) int {
	m := regexp.MustCompile(`^tokens u?int\d+\[(\d+)\]`).FindStringSubmatch(s.Fields)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n - 1
}

// placed is a Loader that has the order which the state is of, and the state as one of its own:
// fields that were named otherwise in the run don't change the order.
func placed(set *found.Set, s loader.State, batch, ranks int, last loader.LastPolicy) (*loader.Loader, loader.State, error) {
	if s.Shards > 0 {
		return nil, s, errors.New("the state is of a stream, whose samples have no numbers: use Loader.Trace in the program")
	}
	if s.Excluded != 0 {
		return nil, s, errors.New("the run has left out samples (loader.Options.Exclude), which the state doesn't list: use Loader.Which in the program")
	}
	if n := int64(set.Len()); n != s.Samples {
		return nil, s, fmt.Errorf("the state is of %d samples, %s has %d", s.Samples, set.Path, n)
	}
	o := loader.Options{Shuffle: s.Shuffle, Seed: s.Seed, Steps: s.Steps, Shard: loader.Shard{Count: ranks}, Last: last}
	ld, err := loader.New(set.Data, batch, o)
	if err != nil {
		return nil, s, err
	}
	own := ld.StateAt(s.Cursor())
	return ld, own, ld.Check(own)
}

// before is up to n steps that end at a state, all of one epoch.
func before(ld *loader.Loader, s loader.State, n, global int) loader.Span {
	to := s.Cursor()
	from := to
	if to.Position == 0 && to.Epoch > 0 {
		batches, _ := ld.Batches()
		from.Epoch, from.Position = to.Epoch-1, int64(max(0, batches-n))*int64(global)
	} else {
		from.Position = max(0, to.Position-int64(n)*int64(global))
	}
	return loader.Span{From: from, To: to}
}

func printSample(w io.Writer, s loader.Sample, ranks int) {
	fmt.Fprintf(w, "epoch %d batch %d", s.Epoch, s.Batch)
	if ranks > 1 {
		fmt.Fprintf(w, " rank %d", s.Rank)
	}
	fmt.Fprintf(w, " row %d: sample %d", s.Row, s.Index)
	if s.Origin != (loader.Origin{}) {
		fmt.Fprintf(w, ", %s", s.Origin)
	}
	if s.Padding {
		fmt.Fprint(w, ", padding")
	}
	fmt.Fprintln(w)
}
