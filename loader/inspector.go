package loader

import (
	"sync"
	"sync/atomic"
	"time"
)

// overdue is when a claim has taken so much longer than was planned that the rest of it
// is for other workers, if there are any without rows.
const overdue = 4 * claimTime

// inspector looks at the workers from time to time while some of them have no rows, and
// tells those that are late with a claim of several rows. They need not read the clock
// between two samples for that, which costs as much as a small one.
type inspector struct {
	run   *Run
	timer *time.Timer
	on    atomic.Bool

	mu   sync.Mutex
	seen []int64 // each worker's turn at the last look, by number
}

func (p *inspector) init(r *Run) {
	p.run, p.seen = r, make([]int64, len(r.crew.workers))
	p.timer = time.AfterFunc(time.Hour, p.look)
	p.timer.Stop()
}

// start has it look soon. It is called where a worker has no rows, and by one that has
// several while others have none.
func (p *inspector) start() {
	if !p.on.Load() && p.on.CompareAndSwap(false, true) {
		p.timer.Reset(overdue)
	}
}

// look tells those that have claimed nothing since the last look. It looks again while
// there are others with several rows.
func (p *inspector) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on.Store(false) // before it looks: a worker has its turn before it calls start
	again := false
	for i, worker := range p.run.crew.all() {
		switch turn := worker.several.Load(); turn {
		case 0, worker.late.Load():
		case p.seen[i]:
			worker.late.Store(turn)
		default:
			p.seen[i], again = turn, true
		}
	}
	if again && p.run.lineup.spare() {
		p.start()
	}
}
