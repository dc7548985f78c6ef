package prefetch

import (
	"errors"

	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
)

// uploadRaw is upload with a transform behind the copy. Where that fails, or ends the
// goroutine, the batches before the one that it fails for are loaded all the same.
func (g *stages) uploadRaw(to *slots.Slot, batches []loader.Filled, up *uploading) (err error) {
	t, raw := g.transform, g.transform.next()
	if up.mark, err = g.copyInto(raw, batches); err != nil {
		return err
	}
	up.copying = g.timeline.now()
	if err := raw.BeginRead(t.stream); err != nil {
		return err
	}
	if err := to.BeginWrite(t.stream); err != nil {
		return err
	}
	if err := g.timeline.Begun(t.stream, up.mark); err != nil {
		return err
	}
	defer func() {
		if up.loaded == 0 {
			return
		}
		failed := raw.EndRead(t.stream)
		if failed == nil {
			failed = g.timeline.Loaded(t.stream, up.mark)
		}
		if failed == nil {
			failed = to.EndWrite(t.stream)
		}
		if failed != nil {
			err = failed
			*up = uploading{err: uploadError(&batches[0], failed)}
		}
	}()
	return t.apply(to.Memory, g.windowsOf(to)[:len(batches)], raw.Memory, &up.loaded)
}

// unlessReturned is deferred by the uploader: that it returns without an error means that a
// transform has ended its goroutine.
func (r *run) unlessReturned() {
	if r.err != nil || r.stages.transform == nil {
		return
	}
	at, err := r.stages.transform.visit.Exited()
	r.err = &StageError{Stage: inTransform, Position: Position(at), Err: err}
	if failed := r.uploading.err; failed != nil {
		r.err = errors.Join(failed, r.err)
	}
}
