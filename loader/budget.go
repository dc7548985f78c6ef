package loader

import (
	"fmt"
	"runtime"
)

// Auto has the number of workers follow what more of them gain; see Options.Workers.
const Auto = 0

// Budget bounds what Workers: Auto takes. The zero value is ready to use. Where Workers is a
// number it has no meaning.
type Budget struct {
	// Workers is the most workers that there are at once. 0 means 512: a Read may hold an open
	// file or a connection, of which a process often has 1024.
	Workers int
	// Cores is how many workers go on reading although they had to wait for a processor.
	// 0 means max(1, GOMAXPROCS-2): two are left to the training loop and to the goroutines
	// that wait for the device.
	Cores int
	// Bytes is for what workers hold beside the batches. Nobody can know that: each counts
	// with twice the bytes of a sample, as if it held one as it was stored and one decoded,
	// once more under ReadTimeout, and 64 KiB. There is one worker in any case. 0 means
	// 256 MiB, or as much as Cores workers take if that is more.
	Bytes int64
}

const (
	defaultMost        = 512
	defaultBudgetBytes = 256 << 20
	workerBytes        = 64 << 10 // a stack, and what Reads allocate
)

func (b Budget) validate(wrong *mistakes) {
	wrong.check(b.Workers >= 0 && b.Workers <= maxWorkers, "Budget.Workers", b.Workers, fmt.Sprintf("0 (%d) to %d", defaultMost, maxWorkers))
	wrong.check(b.Cores >= 0 && b.Cores <= maxWorkers, "Budget.Cores", b.Cores, fmt.Sprintf("0 (by GOMAXPROCS) to %d", maxWorkers))
	wrong.check(b.Bytes >= 0, "Budget.Bytes", b.Bytes, fmt.Sprintf("0 (%d) or more", defaultBudgetBytes))
}

// staff is how many workers a Run has.
type staff struct {
	first int // at once, where there is work for them
	most  int
	base  int // how many never stand aside
}

// staff works out how many workers there are.
func (o Options) staff(l *Layout) staff {
	if n := o.Workers; n != Auto {
		return staff{n, n, n}
	}
	b, processors := o.Budget, runtime.GOMAXPROCS(0)
	if b.Workers == 0 {
		b.Workers = defaultMost
	}
	if b.Cores == 0 {
		b.Cores = max(1, processors-2)
	}
	held := int64(2)
	if o.ReadTimeout > 0 {
		held = 3
	}
	each := held*(l.bytes/int64(l.batch)) + workerBytes
	if b.Bytes == 0 {
		b.Bytes = max(defaultBudgetBytes, int64(b.Cores)*each)
	}
	most := int(min(int64(b.Workers), max(b.Bytes/each, 1)))
	return staff{first: min(max(32, 2*processors), most), most: most, base: min(b.Cores, most)}
}

// share is part i's share, of n.
func (s staff) share(i, n int) staff {
	return staff{share(s.first, i, n), share(s.most, i, n), share(s.base, i, n)}
}

// Workers is the most workers that a Run has: Options.Workers, if that is stated.
func (l *Loader) Workers() int { return l.staff.most }
