package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// shelf is a system's libraries by path. A library's init is what its cuInit returns.
type shelf map[string]shelved

type shelved struct {
	err     error  // why it doesn't load
	without string // a symbol that it lacks
	init    result
	id      uintptr // of the code: the same for one library with two paths
}

// search runs the search and returns the id of the library chosen, 0 for none, and the
// paths tried. Every library that was refused as no driver must have been closed.
func (s shelf) search(t *testing.T, named string, places ...string) (id uintptr, tried []string, err error) {
	loaded := map[string]bool{}
	open := func(path string) (library, error) {
		tried = append(tried, path)
		l, ok := s[path]
		if !ok {
			return library{}, fmt.Errorf("stat %s: %w", path, os.ErrNotExist)
		}
		if l.err != nil {
			return library{}, l.err
		}
		loaded[path] = true
		return library{
			lookup: func(name string) (uintptr, error) {
				if name == l.without {
					return 0, errors.New("undefined symbol: " + name)
				}
				return l.id, nil
			},
			close: func() { delete(loaded, path) },
		}, nil
	}
	start := func(cuInit uintptr) result {
		for _, l := range s {
			if l.id == cuInit {
				return l.init
			}
		}
		t.Fatal("cuInit of no library")
		return 0
	}
	found, err := findDriver(named, places, open, start)
	if err == nil {
		id = found.initialise
	}
	for path := range loaded {
		require.NotEqual(t, stubLibrary, s[path].init, "a stub stays loaded")
		require.Empty(t, s[path].without, "what is no driver stays loaded")
	}
	return id, tried, err
}

func testShelf() shelf {
	return shelf{
		"/narrow": {err: errors.New("/narrow: wrong ELF class: ELFCLASS32")},
		"/stub":   {id: 1, init: stubLibrary},
		"/old":    {id: 2, without: "cuMemAlloc_v2"},
		"/good":   {id: 3},
		"/better": {id: 4},
		"/broken": {id: 5, init: 999},
		"/alias":  {id: 5, init: 999},
		"/empty":  {id: 6, init: noDevice},
	}
}

func TestTheSearchGoesOnToTheDriverThatStarts(t *testing.T) {
	s := testShelf()
	for want, places := range map[uintptr][]string{
		3: {"/absent", "/narrow", "/stub", "/old", "/good", "/better"},
		4: {"/broken", "/alias", "/empty", "/better"},
		// No driver starts: whoever opens a device hears it from the first.
		5: {"/stub", "/broken", "/alias", "/empty", "/absent"},
		6: {"/empty", "/broken"},
	} {
		got, tried, err := s.search(t, "", places...)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if want != 3 {
			require.Equal(t, places, tried)
		}
	}
}

func TestTheSearchSaysWhyNothingWillDo(t *testing.T) {
	_, tried, err := testShelf().search(t, "", "/narrow", "/absent", "/stub", "/old", "/gone")
	require.Len(t, tried, 5)
	for _, want := range []string{
		"/narrow: wrong ELF class: ELFCLASS32;",
		"/stub: the library found is a stub",
		"/old: the driver is too old: it lacks cuMemAlloc_v2",
		"no such file: /absent, /gone",
		"LEAT_CUDA_LIBRARY",
	} {
		require.ErrorContains(t, err, want)
	}
}

// What the environment names is tried alone, and only by an absolute path.
func TestANamedLibraryIsTriedAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths of this test are absolute on other systems")
	}
	s := testShelf()
	got, tried, err := s.search(t, "/better", "/good")
	require.NoError(t, err)
	require.EqualValues(t, 4, got)
	require.Equal(t, []string{"/better"}, tried)

	for named, want := range map[string]string{
		"/stub":   "a stub",
		"/narrow": "wrong ELF class",
		"/old":    "lacks cuMemAlloc_v2",
		"/absent": "no such file: /absent",
	} {
		_, tried, err = s.search(t, named, "/good")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "LEAT_CUDA_LIBRARY names it")
		require.Equal(t, []string{named}, tried)
	}
	for _, named := range []string{"good", "./good", "../good", "libcuda.so.1"} {
		_, tried, err = s.search(t, named, "/good")
		require.ErrorContains(t, err, "want an absolute path")
		require.Empty(t, tried)
	}
}
