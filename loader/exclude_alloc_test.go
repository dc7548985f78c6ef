package loader

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
)

func TestExcludingAllocatesNothing(t *testing.T) {
	ds := FromFunc(1000, []Field{{Name: "x", DType: dtype.Uint8}}, func(context.Context, int, *Row) error { return nil })
	var e Exclusion
	for i := 0; i < 1000; i += 2 {
		e.Samples = append(e.Samples, i)
		e.Leaves = append(e.Leaves, Leaf{Index: i + i%3%2})
	}
	e.Steps = []Span{{Cursor{Position: 10}, Cursor{Position: 20}}}
	l, err := New(ds, 10, Options{Exclude: []Exclusion{e}})
	require.NoError(t, err)
	position := int64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		l.standIn(3, position, int(position))
		position = (position + 1) % 1000
	}))
}

// The digest is kept in states that are read by later versions.
func TestTheDigestOfAnExclusionStaysTheSame(t *testing.T) {
	x := newExclusions()
	x.add(Exclusion{Samples: []int{7, 3}, Files: []string{"train.tar"}}, 100)
	x.add(Exclusion{Leaves: []Leaf{{1, 5}}, Steps: []Span{{Cursor{Position: 4}, Cursor{Position: 8}}}}, 100)
	require.Equal(t, []uint64{0, 0x132cfceb84649201, 0xc4659a28200e1003}, x.digests)
}

func TestSpansAreMerged(t *testing.T) {
	at := func(epoch int, position int64) Cursor {
		return Cursor{Epoch: epoch, Position: position, Substituted: 1}
	}
	got := merged([]Span{
		{at(1, 2), at(1, 4)}, {at(0, 8), at(0, 10)}, {at(0, 0), at(0, 0)}, {at(1, 3), at(1, 3)}, {at(1, 0), at(1, 2)},
		{at(2, 5), at(2, 9)}, {at(2, 6), at(2, 7)},
	}, 10)
	require.Equal(t, []Span{{Cursor{Epoch: 0, Position: 8}, Cursor{Epoch: 1, Position: 4}}, {Cursor{Epoch: 2, Position: 5}, Cursor{Epoch: 2, Position: 9}}}, got)
}
