package ranks_test

import (
	"errors"
	"fmt"
	"log"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/ranks"
)

func TestRanksCountAlongTheLastAxisFirst(t *testing.T) {
	m := ranks.Mesh{{Name: "replica", Size: 2}, {Name: "data", Size: 3}, {Name: "tensor", Size: 4}}
	count, err := m.Ranks()
	require.NoError(t, err)
	require.Equal(t, 24, count)
	for rank := range count {
		for _, want := range []struct {
			axes         []string
			index, count int
		}{
			{[]string{"replica"}, rank / 12, 2},
			{[]string{"data"}, rank / 4 % 3, 3},
			{[]string{"tensor"}, rank % 4, 4},
			{[]string{"replica", "data"}, rank / 4, 6},
			{[]string{"tensor", "replica"}, rank/12*4 + rank%4, 8},
			{[]string{"replica", "data", "tensor"}, rank, 24},
		} {
			got, err := m.Shard(rank, want.axes...)
			require.NoError(t, err)
			require.Equal(t, loader.Shard{Index: want.index, Count: want.count}, got, "rank %d along %v", rank, want.axes)
		}
	}
}

func TestAMeshSaysAllThatIsWrongWithIt(t *testing.T) {
	good := ranks.Mesh{{Name: "data", Size: 2}, {Name: "tensor", Size: 2}}
	_, err := good.Shard(0, "pipeline")
	require.ErrorContains(t, err, "want one of [data tensor]")
	for name, c := range map[string]struct {
		mesh  ranks.Mesh
		rank  int
		axes  []string
		wrong []string
	}{
		"empty":         {nil, 0, []string{"data"}, []string{"Mesh", "axes"}},
		"sizes":         {ranks.Mesh{{Name: "data"}, {Name: "tensor", Size: -1}}, 0, []string{"data"}, []string{"Mesh[0] (data)", "Mesh[1] (tensor)"}},
		"names":         {ranks.Mesh{{Name: "data", Size: 1}, {Size: 1}, {Name: "data", Size: 1}}, 0, []string{"data"}, []string{"Mesh[1] ()", "Mesh[2] (data)"}},
		"too many":      {ranks.Mesh{{Name: "data", Size: math.MaxInt32}, {Name: "tensor", Size: math.MaxInt32}, {Name: "more", Size: math.MaxInt32}}, 0, []string{"data"}, []string{"Mesh"}},
		"a huge axis":   {ranks.Mesh{{Name: "data", Size: math.MaxInt}}, 0, []string{"data"}, []string{"Mesh[0] (data)"}},
		"a rank of it":  {ranks.Mesh{{Name: "data"}}, 7, []string{"data"}, []string{"Mesh[0] (data)"}},
		"negative rank": {good, -1, []string{"data"}, []string{"rank"}},
		"rank too high": {good, 4, []string{"data"}, []string{"rank"}},
		"no axis":       {good, 0, nil, []string{"axes"}},
		"unknown axis":  {good, 9, []string{"pipeline"}, []string{"rank", "axes"}},
		"twice":         {good, 0, []string{"data", "data"}, []string{"axes"}},
	} {
		_, err := c.mesh.Shard(c.rank, c.axes...)
		require.Equal(t, c.wrong, options(err), name)
	}
}

// options are the names in the OptionErrors that err joins.
func options(err error) (names []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			names = append(names, options(err)...)
		}
		return names
	}
	var wrong *loader.OptionError
	if errors.As(err, &wrong) {
		names = append(names, wrong.Option)
	}
	return names
}

// Eight ranks: two batches at a time, each for a group of four, of which two have the
// sequences' first and last quarters and two the middle.
func ExampleMesh() {
	m := ranks.Mesh{{Name: "data", Size: 2}, {Name: "context", Size: 2}, {Name: "tensor", Size: 2}}
	tokens := []int32{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17} // of a batch, [2, 8]
	const rank = 6
	data, err := m.Shard(rank, "data") // for loader.Options
	if err != nil {
		log.Fatal(err)
	}
	context, err := m.Shard(rank, "context")
	if err != nil {
		log.Fatal(err)
	}
	pieces, err := ranks.HeadAndTail(context, 8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("batch", data.Index, "of", data.Count)
	for _, piece := range pieces {
		for from, to := range piece.Runs([]int{2, 8}, 1) {
			fmt.Println(tokens[from:to])
		}
	}
	// Output:
	// batch 1 of 2
	// [2 3]
	// [12 13]
	// [4 5]
	// [14 15]
}
