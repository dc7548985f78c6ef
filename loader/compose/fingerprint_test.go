package compose_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// known is a dataset with a fingerprint.
type known struct {
	loader.Dataset
	fingerprint uint64
}

func (k known) Fingerprint() uint64 { return k.fingerprint }

func part(i int) func(parts []loader.Dataset, err error) loader.Dataset {
	return func(parts []loader.Dataset, err error) loader.Dataset { return must(parts[i], err) }
}

// compositions are all that a State must tell apart: each is made of ds.
func compositions(ds loader.Dataset) map[string]loader.Dataset {
	five := values(1, 2, 3, 4, 5)
	mix := func(seed uint64, rule compose.Rule, weight float64, inOrder bool) loader.Dataset {
		return must(compose.Mix(seed, rule, compose.Source{Dataset: ds, Weight: 1}, compose.Source{Dataset: five, Weight: weight, InOrder: inOrder}))
	}
	steps := func(from int64, weights ...float64) loader.Dataset {
		return must(compose.MixSteps(1, compose.Once, []compose.Step{{Weights: weights}, {From: from, Weights: []float64{1, 2}}},
			compose.Source{Dataset: ds}, compose.Source{Dataset: five}))
	}
	weights, labels := slices.Repeat([]float64{1, 2}, 5), slices.Repeat([]int{1, 2}, 5)
	others, classes := slices.Clone(weights), slices.Clone(labels)
	others[3], classes[3] = 7, 7
	return map[string]loader.Dataset{
		"Subset":          must(compose.Subset(ds, []int{1, 2})),
		"Subset 2":        must(compose.Subset(ds, []int{2, 1})),
		"Take":            must(compose.Take(ds, 5)),
		"Take 2":          must(compose.Take(ds, 6)),
		"Skip":            must(compose.Skip(ds, 5)),
		"Repeat":          must(compose.Repeat(ds, 2)),
		"Repeat 2":        must(compose.Repeat(ds, 3)),
		"Concat":          must(compose.Concat(ds, five)),
		"Concat 2":        must(compose.Concat(five, ds)),
		"Concat 3":        must(compose.Concat(five, five, ds)),
		"Zip":             must(compose.Zip(ds, column("y", upTo(0, 10)...))),
		"Select":          must(compose.Select(ds, 2, func(_, i int) int { return i })),
		"Shuffle":         must(compose.Shuffle(ds, 1)),
		"Shuffle 2":       must(compose.Shuffle(ds, 2)),
		"Mix":             mix(1, compose.UntilAllEnded, 1, false),
		"Mix 2":           mix(2, compose.UntilAllEnded, 1, false),
		"Mix 3":           mix(1, compose.Once, 1, false),
		"Mix 4":           mix(1, compose.UntilAllEnded, 2, false),
		"Mix 5":           mix(1, compose.UntilAllEnded, 1, true),
		"MixSteps":        steps(3, 1, 1),
		"MixSteps 2":      steps(4, 1, 1),
		"MixSteps 3":      steps(3, 1, 2),
		"Weighted":        must(compose.Weighted(ds, weights, 10, 1)),
		"Weighted 2":      must(compose.Weighted(ds, weights, 10, 2)),
		"Weighted 3":      must(compose.Weighted(ds, weights, 11, 1)),
		"Weighted 4":      must(compose.Weighted(ds, others, 10, 1)),
		"Balanced":        must(compose.Balanced(ds, labels, 1)),
		"Balanced 2":      must(compose.Balanced(ds, labels, 2)),
		"Balanced 3":      must(compose.Balanced(ds, classes, 1)),
		"ByLength":        must(compose.ByLength(ds, labels, 2, 1)),
		"ByLength 2":      must(compose.ByLength(ds, labels, 2, 2)),
		"ByLength 3":      must(compose.ByLength(ds, labels, 3, 1)),
		"ByLength 4":      must(compose.ByLength(ds, classes, 2, 1)),
		"Map":             must(compose.Map(ds, xField, plus(1))),
		"Map 2":           must(compose.Map(ds, column("y").Fields(), plus(1))),
		"Retry":           must(compose.Retry(ds, compose.RetryOptions{})),
		"CacheMemory":     cached(ds),
		"Filter":          must(compose.Filter(ds, func(i int) bool { return i != 3 })),
		"Split":           part(0)(compose.Split(ds, 1, 0.5, 0.5)),
		"Split 2":         part(1)(compose.Split(ds, 1, 0.5, 0.5)),
		"SplitN":          part(0)(compose.SplitN(ds, 1, 5, 5)),
		"SplitN 2":        part(1)(compose.SplitN(ds, 1, 5, 5)),
		"SplitN 3":        part(0)(compose.SplitN(ds, 2, 5, 5)),
		"Take of Shuffle": must(compose.Take(must(compose.Shuffle(ds, 1)), 5)),
		"Shuffle of Take": must(compose.Shuffle(must(compose.Take(ds, 5)), 1)),
	}
}

func TestFingerprintsTellCompositionsApart(t *testing.T) {
	of := map[uint64]string{}
	add := func(name string, ds loader.Dataset) {
		f := ds.(loader.Fingerprinter).Fingerprint()
		require.NotContains(t, of, f, "%s has the fingerprint of %s", name, of[f])
		of[f] = name
	}
	ds := values(upTo(0, 10)...)
	for name, composed := range compositions(ds) {
		add(name, composed)
	}
	for name, composed := range compositions(known{ds, 1}) {
		add(name+" of known 1", composed)
	}
	for name, composed := range compositions(known{ds, 2}) {
		add(name+" of known 2", composed)
	}
	again := compositions(ds)
	for f, name := range of {
		if ds, ok := again[name]; ok {
			require.Equal(t, f, ds.(loader.Fingerprinter).Fingerprint(), "made again it is the same")
		}
	}
}

func TestAStateOfAnotherCompositionIsRefused(t *testing.T) {
	state := func(ds loader.Dataset) (*loader.Loader, loader.State) {
		ld, err := loader.New(ds, 2, loader.Options{})
		require.NoError(t, err)
		return ld, ld.StateAt(loader.Cursor{Position: 2})
	}
	ds := values(upTo(0, 10)...)
	one, s := state(must(compose.Shuffle(ds, 1)))
	other, _ := state(must(compose.Shuffle(ds, 2)))
	require.NoError(t, one.Check(s))
	var refused *loader.StateError
	require.ErrorAs(t, other.Check(s), &refused)
	require.Equal(t, "Fingerprint", refused.Field)
}
