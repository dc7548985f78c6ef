package affinity

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func mine(t *testing.T, who int) unix.CPUSet {
	var c unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(who, &c))
	return c
}

// processors are those that this process may use.
func processors(t *testing.T) []int {
	all := mine(t, os.Getpid())
	var list []int
	for p := range 1024 {
		if all.IsSet(p) {
			list = append(list, p)
		}
	}
	return list
}

func TestThereIsNothingToChoose(t *testing.T) {
	require.Nil(t, New(nil))
	require.Nil(t, New(processors(t)))
	require.Nil(t, New([]int{-1, 1023, 1 << 20}))
}

// Move goes to the processors asked for, and the thread may leave them afterwards.
func TestMove(t *testing.T) {
	have := processors(t)
	if len(have) < 2 {
		t.Skip("this process may use one processor alone")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := mine(t, 0)
	// The system may move the thread back before it is asked where it is.
	for _, p := range have {
		s := New([]int{1000, p})
		require.NotNil(t, s)
		require.Equal(t, 1, s.Len())
		for s.Move(); current() != p; s.Move() {
		}
		require.Equal(t, before, mine(t, 0))
	}
	first, last := New(have[:1]), New(have[1:])
	require.Zero(t, testing.AllocsPerRun(100, func() { first.Move(); last.Move() }))
}

// A thread that is kept to other processors stays on them.
func TestMoveKeepsToTheThreadsOwn(t *testing.T) {
	have := processors(t)
	if len(have) < 2 {
		t.Skip("this process may use one processor alone")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := mine(t, 0)
	away := New(have[1:2])
	require.NotNil(t, away)
	var kept unix.CPUSet
	kept.Set(have[0])
	require.NoError(t, unix.SchedSetaffinity(0, &kept))
	away.Move()
	after := mine(t, 0)
	at := current()
	require.NoError(t, unix.SchedSetaffinity(0, &before))
	require.Equal(t, kept, after)
	require.Equal(t, have[0], at)
}

func BenchmarkMove(b *testing.B) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		b.Skip("one processor")
	}
	var sets []*Set
	for p := range 1024 {
		if all.IsSet(p) {
			sets = append(sets, New([]int{p}))
		}
	}
	for from, turn := range map[string]int{"there": 0, "elsewhere": 1} {
		b.Run("from="+from, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for i := 0; b.Loop(); i += turn {
				sets[i%2].Move()
			}
		})
	}
}
