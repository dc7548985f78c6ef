package ranks

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leat-go/leat/loader"
)

// Mesh is the ranks of a program in a grid of named axes. The rank counts along the last
// axis first: in a mesh of data 2 and tensor 4, ranks 0 to 3 have data index 0.
//
// Ranks that differ only in other axes than the data's, those of one tensor or pipeline
// group, need the same batches: give the Loader of each the Shard of the data axis.
type Mesh []Axis

// Axis is one direction of a Mesh.
type Axis struct {
	// Name tells the axes of a mesh apart: data, tensor, pipeline, context. It is not empty.
	Name string
	// Size is the number of indices along it, 1 or more.
	Size int
}

// Ranks is the number of ranks. The error joins a *loader.OptionError for every mistake in the
// axes.
func (m Mesh) Ranks() (int, error) {
	var wrong mistakes
	wrong.check(len(m) > 0, "Mesh", "empty", "at least one axis")
	ranks := int64(1)
	for i, axis := range m {
		option := fmt.Sprintf("Mesh[%d] (%s)", i, axis.Name)
		wrong.check(axis.Name != "", option, "without a name", "a name")
		wrong.check(m.axis(axis.Name) == i, option, axis.Name, "a name that no other axis has")
		wrong.check(axis.Size >= 1 && axis.Size <= most, option, axis.Size, fmt.Sprintf("a size of 1 to %d", most))
		ranks = min(ranks*int64(min(max(axis.Size, 1), most)), most+1)
	}
	wrong.check(ranks <= most, "Mesh", []Axis(m), fmt.Sprintf("at most %d ranks", most))
	return int(ranks), wrong.err()
}

// Shard is a rank's index along an axis and the axis' size: of the data axis it is the
// Shard for Options, of the context axis the part of a sequence that the rank has. Along
// several axes the ranks count as in the mesh of these axes, in the order of m: where data
// is split over replicas and again inside each, Shard of both. The error joins an
// *OptionError for every mistake in the mesh, the rank and the axes.
func (m Mesh) Shard(rank int, axes ...string) (loader.Shard, error) {
	var wrong mistakes
	ranks, err := m.Ranks()
	if err != nil {
		wrong = append(wrong, err)
	}
	wrong.check(err != nil || rank >= 0 && rank < ranks, "rank", rank, fmt.Sprintf("0 to %d", ranks-1))
	wrong.check(len(axes) > 0, "axes", "empty", "at least one axis")
	for i, name := range axes {
		wrong.check(m.axis(name) >= 0, "axes", name, fmt.Sprintf("one of %v", m.names()))
		wrong.check(slices.Index(axes, name) == i, "axes", name, "each axis once")
	}
	if err := wrong.err(); err != nil {
		return loader.Shard{}, err
	}
	s, index := loader.Shard{Count: 1}, rank
	for _, axis := range slices.Backward(m) {
		if slices.Contains(axes, axis.Name) {
			s.Index += index % axis.Size * s.Count
			s.Count *= axis.Size
		}
		index /= axis.Size
	}
	return s, nil
}

// axis is the number of the first axis of that name, or -1.
func (m Mesh) axis(name string) int {
	return slices.IndexFunc(m, func(a Axis) bool { return a.Name == name })
}

func (m Mesh) names() (names []string) {
	for _, a := range m {
		names = append(names, a.Name)
	}
	return names
}

// most is how many ranks there may be: as many as a loader's global batch may have rows.
const most = math.MaxInt32

// mistakes are what is found wrong, all of it.
type mistakes []error

// check adds a *loader.OptionError unless ok.
func (m *mistakes) check(ok bool, option string, value any, want string) {
	if !ok {
		*m = append(*m, &loader.OptionError{Package: "ranks", Option: option, Value: value, Want: want})
	}
}

func (m mistakes) err() error { return errors.Join(m...) }
