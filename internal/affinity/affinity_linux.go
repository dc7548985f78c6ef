package affinity

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Set is processors to be on. It is safe for concurrent use.
type Set struct{ near unix.CPUSet }

// New is the set of those of processors that this process may use. It is nil where there
// are none of them, or no others: then there is nothing to choose.
func New(processors []int) *Set {
	var all unix.CPUSet
	if unix.SchedGetaffinity(os.Getpid(), &all) != nil {
		return nil
	}
	s := new(Set)
	for _, p := range processors {
		if all.IsSet(p) {
			s.near.Set(p)
		}
	}
	if n := s.near.Count(); n == 0 || n == all.Count() {
		return nil
	}
	return s
}

// Len is the number of processors.
func (s *Set) Len() int { return s.near.Count() }

// Move brings the calling goroutine's OS thread to the set's processors, if it is
// elsewhere. There it stays until the system has a reason to move it, with the goroutine as
// a rule for as long as that does not wait: to keep both there would need the thread locked
// to the goroutine, and then handing anything to another takes eighty times as long. A
// thread that may not go there, and a system that refuses, leave it where it is.
func (s *Set) Move() {
	if s.near.IsSet(current()) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var may, to unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return
	}
	for i := range to {
		to[i] = may[i] & s.near[i]
	}
	if to.Count() > 0 && unix.SchedSetaffinity(0, &to) == nil {
		_ = unix.SchedSetaffinity(0, &may)
	}
}

// current is the processor that the caller is on, −1 if the system doesn't say.
func current() int {
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}
