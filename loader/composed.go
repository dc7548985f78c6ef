package loader

import "fmt"

// Composed is a Dataset whose samples are those of other Datasets: a part of one, several
// mixed, one mapped. It makes known where a sample comes from; see Loader.Which.
type Composed interface {
	Dataset
	// Parts are the datasets that the samples come from. They are always the same. A
	// dataset that is used twice is there twice.
	Parts() []Dataset
	// Part returns the number of the part that sample index of a pass is made of, the
	// sample's index there, and the part's pass: those that Read reads. At the top a pass is
	// an epoch; a composition that reads a part several times an epoch numbers the part's
	// passes. Of several parts that a sample is made of it is the first. It reads no data,
	// and may be called by several goroutines at once.
	Part(pass uint64, index int) (part, at int, partPass uint64)
}

// Locator is a Dataset that knows where its samples lie.
type Locator interface {
	// Origin is where a sample comes from. It reads no data, and may be called by
	// several goroutines at once.
	Origin(index int) Origin
}

// Leaf names a sample by the dataset that it is read from in the end, below all
// compositions. Epochs and orders don't change it, nor do compositions of a single part,
// which choose samples or map them.
type Leaf struct {
	// Source is the dataset's number: of all datasets that are not Composed, in the order
	// in which Parts has them. It is 0 if there is one.
	Source int
	// Index is the sample's index in it.
	Index int
}

// tree is a dataset with all that it is composed of.
type tree struct {
	composed Composed // or else
	source   int      // the number of a leaf
	parts    []tree
}

// roots returns the tree of a dataset, and the datasets at its bottom by their number.
func roots(ds Dataset) (tree, []Dataset) {
	var leaves []Dataset
	t := grow(ds, &leaves)
	return t, leaves
}

func grow(ds Dataset, leaves *[]Dataset) tree {
	composed, ok := ds.(Composed)
	if !ok {
		*leaves = append(*leaves, ds)
		return tree{source: len(*leaves) - 1}
	}
	t := tree{composed: composed}
	for _, part := range composed.Parts() {
		t.parts = append(t.parts, grow(part, leaves))
	}
	return t
}

// leaf is the sample that one of an epoch is made of.
func (t *tree) leaf(epoch, index int) Leaf {
	pass := uint64(epoch)
	for t.composed != nil {
		part, at, partPass := t.composed.Part(pass, index)
		if uint(part) >= uint(len(t.parts)) {
			panic(fmt.Sprintf("loader: Part of sample %d is %d, and there are %d parts", index, part, len(t.parts)))
		}
		t, index, pass = &t.parts[part], at, partPass
	}
	return Leaf{Source: t.source, Index: index}
}
