package cuda

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canMap = true

// mapPages maps bytes, rounded up to a page, of zeroed memory, and touches it all.
// From a huge page on it begins at a huge page's border, and the kernel is asked
// for huge pages. numa is the node to take the memory from, −1 for any.
func mapPages(bytes int64, numa int) ([]byte, error) {
	page := int64(os.Getpagesize())
	size := (bytes + page - 1) / page * page
	reserved := size
	if size >= hugePage {
		reserved += hugePage - page
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(reserved), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", size, err)
	}
	head := int64(0)
	if size >= hugePage {
		head = -int64(uintptr(p)) & (hugePage - 1)
	}
	mem := unsafe.Slice((*byte)(p), reserved)
	// A refusal to give back what was reserved for alignment would be the kernel
	// out of mappings; the memory is usable all the same.
	unmapPages(mem[:head])
	unmapPages(mem[head+size:])
	mem = mem[head : head+size : head+size]
	if size >= hugePage {
		// Advice: a kernel without huge pages serves with small ones.
		unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
	preferNode(mem, numa)
	touch(mem, page)
	return mem, nil
}

func unmapPages(mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))); err != nil {
		return fmt.Errorf("munmap of %d bytes: %w", len(mem), err)
	}
	return nil
}

// keepFromFork keeps mem, whole pages, out of the children that a C library forks.
// Shared with a child, a page of a private mapping becomes copy-on-write: the next
// write here would go to a copy, and the device would go on reading the page pinned
// before. A shared mapping would do too, but most systems give it no huge pages.
func keepFromFork(mem []byte) error { return unix.Madvise(mem, unix.MADV_DONTFORK) }

// touch makes every page of mem present. Zeroing pages is what takes the time in
// pinning, and it runs on all cores here.
func touch(mem []byte, page int64) {
	const chunk = 16 << 20
	var workers sync.WaitGroup
	defer workers.Wait()
	size := int64(len(mem))
	each := max(chunk, (size/int64(runtime.GOMAXPROCS(0))+hugePage-1)/hugePage*hugePage)
	for from := int64(0); from < size; from += each {
		part := mem[from:min(from+each, size)]
		workers.Go(func() {
			for i := int64(0); i < int64(len(part)); i += page {
				part[i] = 0
			}
		})
	}
}

// preferNode asks for mem on a NUMA node: copies from another node's memory lose
// about a third of the bus. It is a preference, and a kernel that refuses it, as
// in a container, places the pages itself.
func preferNode(mem []byte, node int) {
	const preferred = 1 // MPOL_PREFERRED
	if node < 0 || node >= 64 {
		return
	}
	mask := [2]uint64{1 << node}
	unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)),
		preferred, uintptr(unsafe.Pointer(&mask)), 65, 0)
}
