package prefetch_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leat-go/leat/internal/waitmodel"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/prefetch"
)

// diary keeps all that it is told.
type diary struct {
	mu        sync.Mutex
	roles     map[journal.Role]int
	reads     []journal.Read
	steps     []journal.Step
	uploads   []journal.Upload
	downloads []journal.Download
}

func (d *diary) Goroutine(role journal.Role, _ int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.roles == nil {
		d.roles = map[journal.Role]int{}
	}
	d.roles[role]++
}

func (d *diary) Reading(int) {}

func (d *diary) Read(r journal.Read) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads = append(d.reads, r)
}

func (d *diary) Step(s *journal.Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, *s)
}

func (d *diary) Upload(u *journal.Upload) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uploads = append(d.uploads, *u)
}

func (d *diary) Download(x journal.Download) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.downloads = append(d.downloads, x)
}

// sum is all parts of all steps.
func (d *diary) sum() (all journal.Parts) {
	for i := range d.steps {
		all = all.Plus(d.steps[i].Parts)
	}
	return all
}

// holds says what is wrong with what was told of a whole run of the pipeline that p describes.
func (d *diary) holds(p waitmodel.Pipeline, want *waitmodel.Result, s prefetch.Stats, patient bool) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("told: "+format, args...)) }
	if len(d.steps) != len(want.Steps) {
		wrong("%d steps, want %d", len(d.steps), len(want.Steps))
		return errs
	}
	perEpoch := (p.Samples + p.Batch - 1) / p.Batch
	for i := range d.steps {
		at := &d.steps[i]
		if at.Epoch != i/perEpoch || at.Batch != i%perEpoch {
			wrong("step %d is batch %d of epoch %d", i, at.Batch, at.Epoch)
		}
		// A wait that was given up may have ended between two calls.
		if parts := journal.Parts(want.Steps[i]); patient && at.Parts != parts {
			wrong("step %d: %+v, want %+v", i, at.Parts, parts)
		}
		if patient && at.Parts.Sum() != at.Ended.Sub(at.Called) {
			wrong("step %d: the parts are %v, the step %v", i, at.Parts.Sum(), at.Ended.Sub(at.Called))
		}
	}
	all := d.sum()
	for name, pair := range map[string][2]time.Duration{
		"producers": {all.Producers, s.WaitProducer}, "order": {all.Order, s.WaitOrder}, "leases": {all.Leases, s.WaitRelease},
		"device": {all.HostSlot + all.Copy + all.Transform + all.Device, s.WaitDevice}, "body": {all.Body, s.Body},
	} {
		if pair[0] != pair[1] {
			wrong("%s: %v of all steps, %v in Stats", name, pair[0], pair[1])
		}
	}
	if p.Device != nil && max(1, p.Device.Streams) == 1 {
		errs = append(errs, d.holdUploads(p, want)...)
	}
	return errs
}

// holdUploads holds the timed events against the model.
func (d *diary) holdUploads(p waitmodel.Pipeline, want *waitmodel.Result) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("told: "+format, args...)) }
	if len(d.uploads) != want.Uploads {
		wrong("%d uploads, want %d", len(d.uploads), want.Uploads)
	}
	var began time.Time // of the pipeline, that all instants of the model are since
	for i := range d.steps {
		if at := d.steps[i].Delivered.Add(-want.Times[i].Delivered); began.IsZero() {
			began = at
		} else if !at.Equal(began) {
			wrong("step %d was delivered at another time", i)
		}
	}
	for i, u := range d.uploads {
		first, ok := slices.BinarySearchFunc(d.steps, u.Number, func(s journal.Step, n int64) int { return cmp.Compare(s.Upload, n) })
		if !ok || u.Number != int64(i) {
			wrong("upload %d has the number %d", i, u.Number)
			continue
		}
		for first > 0 && d.steps[first-1].Upload == u.Number {
			first--
		}
		last := first + u.Batches - 1
		at := func(on time.Duration) time.Duration { return u.Origin.Add(on).Sub(began) }
		if got, want := at(u.Copied), want.Times[first].Copied; got != want {
			wrong("upload %d was copied at %v, want %v", i, got, want)
		}
		// Of batches that another goroutine releases it has what was submitted meanwhile, too.
		if got, want := at(u.Finished), max(want.Times[last].Computed, want.Times[last].Released); got < want || got > want && p.Released == nil {
			wrong("upload %d was finished at %v, want %v", i, got, want)
		}
		if u.Copied < u.Started || u.Begun < u.Copied || u.Loaded < u.Begun || u.Finished < u.Reached {
			wrong("upload %d: %+v", i, u)
		}
	}
	return errs
}
