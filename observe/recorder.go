package observe

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// Options tunes a Recorder. The zero value is ready to use.
type Options struct {
	// Steps is how many of the last steps the timeline keeps. 0 means 256.
	Steps int
	// Reads is how many of the last runs of samples it keeps of each worker, of up to 64
	// workers, which share what there is beyond. 0 means 256.
	Reads int
	// PeakBytesPerSecond is what the bus can do, as leat probe finds it: what the rate of
	// copies is held against. 0 means that nobody knows.
	PeakBytesPerSecond float64
}

// A Recorder is a journal.Recorder that keeps sums, histograms and the last steps, in memory
// of a fixed size: recording allocates nothing. One Recorder serves one pipeline; Member
// makes one for each device of a group. It is safe for concurrent use.
type Recorder struct {
	options Options
	began   time.Time
	members members
	// latencies tells how long goroutines wait for a processor.
	latencies func() Histogram

	mu        sync.Mutex
	steps     ring[journal.Step]
	uploads   ring[journal.Upload]
	downloads ring[journal.Download]
	host      Host
	device    deviceAccount

	workers [shards]worker
}

const (
	shards = 64
	// So many stay in a processor's cache: writing to memory is what recording costs most.
	defaultSteps = 256
	defaultReads = 256
	mostSlow     = 8
)

// worker is what was recorded of one worker, or of those whose numbers are alike modulo
// shards. No two share a cache line.
type worker struct {
	mu      sync.Mutex
	reads   ring[journal.Read]
	figures Reads
	region  region
	_       [64]byte
}

// NewRecorder makes a Recorder. It owns no goroutine, and need not be closed.
func NewRecorder(o Options) *Recorder {
	o.Steps = cmp.Or(max(o.Steps, 0), defaultSteps)
	o.Reads = cmp.Or(max(o.Reads, 0), defaultReads)
	r := &Recorder{options: o, began: time.Now(), latencies: scheduling}
	r.steps.init(o.Steps)
	r.uploads.init(o.Steps)
	r.downloads.init(o.Steps)
	return r
}

// Options are the options in force.
func (r *Recorder) Options() Options { return r.options }

// Read implements journal.Recorder.
func (r *Recorder) Read(read journal.Read) {
	w := &r.workers[read.Worker%shards]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.region.end()
	w.reads.init(r.options.Reads) // when the worker first reads
	w.reads.add(&read)
	w.figures.add(&read)
}

// Step implements journal.Recorder.
func (r *Recorder) Step(s *journal.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps.add(s)
	r.host.add(s)
}

// Upload implements journal.Recorder.
func (r *Recorder) Upload(u *journal.Upload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uploads.add(u)
	r.device.upload(u, &r.steps)
}

// Download implements journal.Recorder.
func (r *Recorder) Download(d journal.Download) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.downloads.add(&d)
	r.host.Downloads.Add(d.Arrived.Sub(d.Sent), 1)
	r.host.DownloadBytes += d.Bytes
}

// A ring keeps the last of what it is given.
type ring[T any] struct {
	all  []T
	next int
	n    int64 // how many there were
}

// init makes room for so many, once.
func (r *ring[T]) init(n int) {
	if r.all == nil {
		r.all = make([]T, n)
	}
}

func (r *ring[T]) add(v *T) {
	r.all[r.next] = *v
	r.n++
	if r.next++; r.next == len(r.all) {
		r.next = 0
	}
}

// len is how many are kept.
func (r *ring[T]) len() int { return int(min(r.n, int64(len(r.all)))) }

// last is the one that was added so many before the newest, which is 0.
func (r *ring[T]) last(back int) *T {
	i := r.next - 1 - back
	if i < 0 {
		i += len(r.all)
	}
	return &r.all[i]
}

// kept is a copy of all that is kept, the oldest first.
func (r *ring[T]) kept() []T {
	if r.n < int64(len(r.all)) {
		return slices.Clone(r.all[:r.next])
	}
	return append(slices.Clone(r.all[r.next:]), r.all[:r.next]...)
}
