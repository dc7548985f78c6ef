package compose

import (
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// kind tells the compositions apart in fingerprints and in the keys of their shuffles. The
// numbers must never change: States and caches hold what follows from them.
type kind uint64

const (
	kindLeaf     kind = 1
	kindSubset   kind = 2
	kindRange    kind = 3 // Take, Skip
	kindRepeat   kind = 4
	kindConcat   kind = 5
	kindZip      kind = 6
	kindSelect   kind = 7
	kindShuffle  kind = 8
	kindSplitN   kind = 9
	kindMap      kind = 10
	kindMix      kind = 11
	kindWeighted kind = 12
	kindBalanced kind = 13
	kindByLength kind = 14
	kindSplit    kind = 15
	kindRetry    kind = 16
	kindCache    kind = 17
)

// fingerprint is that of a composition: its kind, its parameters and its parts.
func fingerprint(k kind, parts []part, parameters ...uint64) uint64 {
	h := mix.Hash(uint64(k), uint64(len(parts)), uint64(len(parameters)))
	for _, p := range parameters {
		h = mix.Hash(h, p)
	}
	for i := range parts {
		h = mix.Hash(h, parts[i].fingerprint())
	}
	return h
}

// fingerprint is the part's own. One that has none is known by its length and its fields.
func (p *part) fingerprint() uint64 {
	h := mix.Hash(uint64(kindLeaf), uint64(p.length), hashString(listed(p.fields)))
	if f, ok := p.dataset.(loader.Fingerprinter); ok {
		h = mix.Hash(h, f.Fingerprint())
	}
	return h
}

func hashString(s string) uint64 {
	h := mix.Hash(uint64(len(s)))
	for _, c := range []byte(s) {
		h = mix.Hash(h, uint64(c))
	}
	return h
}

// hashInts is that of a sequence of numbers.
func hashInts[T ~int | ~uint32](numbers []T) uint64 {
	h := mix.Hash(uint64(len(numbers)))
	for _, n := range numbers {
		h = mix.Word(h ^ uint64(n) + 0x9e3779b97f4a7c15)
	}
	return h
}
