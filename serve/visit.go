package serve

import (
	"context"
	"runtime/debug"

	"github.com/leat-go/leat/loader"
)

// A visit is one call of Do: a request with its types. It is used again for others.
type visit[Req, Resp any] struct {
	entry
	q       *Queue[Req, Resp]
	scratch *loader.Scratch
	origin  loader.Row // where scratch has its random numbers from: the same for every request
	req     Req
	resp    Resp
}

// visit is a new one, for a request.
func (q *Queue[Req, Resp]) visit(ctx context.Context, req Req) (*visit[Req, Resp], error) {
	v, ok := q.visits.Get().(*visit[Req, Resp])
	if !ok {
		scratch, err := loader.NewScratch(q.model.In)
		if err != nil {
			return nil, err
		}
		v = &visit[Req, Resp]{q: q, scratch: scratch, entry: entry{done: make(chan struct{}, 1)}}
		v.of = v
	}
	v.ctx, v.req = ctx, req
	return v, nil
}

// recycle implements request.
func (v *visit[Req, Resp]) recycle() {
	v.entry = entry{of: v, done: v.done}
	v.req, v.resp = *new(Req), *new(Resp) // what they refer to may be garbage from now on
	v.q.visits.Put(v)
}

// run implements request.
func (v *visit[Req, Resp]) run() {
	stage, returned := StageSize, false
	var err error
	defer func() {
		if !returned {
			err = caught(recover(), debug.Stack())
		}
		if err != nil {
			err = &Error{Stage: stage, Waited: v.q.line.now() - v.came, Err: err}
		}
		v.q.line.encoded(&v.entry, err)
	}()
	m, most := &v.q.model, v.q.line.options.MaxSize
	if m.Size != nil && most > 0 && m.Size(v.req) > most {
		err, returned = ErrTooLarge, true
		return
	}
	stage = StageEncode
	err = v.encode()
	returned = true
}

func (v *visit[Req, Resp]) encode() error {
	v.row = v.scratch.Begin(&v.origin)
	if err := v.q.model.Encode(v.ctx, v.req, v.row); err != nil {
		return err
	}
	return v.scratch.Written()
}

// decode implements request.
func (v *visit[Req, Resp]) decode(a Answer) (err error) {
	v.resp, err = v.q.model.Decode(a)
	return err
}

// await is Do behind the entrance.
func (v *visit[Req, Resp]) await() (resp Resp, err error) {
	select {
	case <-v.done:
		return v.result()
	case <-v.ctx.Done():
	case <-v.q.line.ending:
		if err, left := v.q.line.desert(&v.entry); left {
			return resp, err // v is the batch's to recycle
		}
		<-v.done
		return v.result()
	}
	l, came, ctx := v.q.line, v.came, v.ctx // v may be another's when leave returns
	was, away := l.leave(&v.entry)
	err = &Error{Stage: was.stage(), Waited: l.now() - came, Err: context.Cause(ctx)}
	switch {
	case away:
		v.recycle()
	case was == encoding: // its memory is the caller's only then
		<-v.done
		v.recycle()
	case was == answered:
		<-v.done
		return v.result()
	}
	return resp, err
}

// result is an answered visit's.
func (v *visit[Req, Resp]) result() (resp Resp, err error) {
	if err = v.err; err == nil {
		resp = v.resp
	}
	ctx := v.ctx
	v.recycle()
	if own, ok := err.(*Error); ok && own.Err == errOver {
		own.Err = overdue(ctx)
	}
	return resp, err
}

// stage is how far a request has come.
func (s state) stage() Stage {
	return [...]Stage{outside: StagePlace, encoding: StageEncode, ready: StageLine, late: StageLine,
		inBatch: StageBatch, answered: StageBatch}[s]
}
