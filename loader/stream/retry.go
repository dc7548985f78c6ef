package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-go/leat/loader"
)

// RetryOptions tunes Retry. The zero value is ready to use.
type RetryOptions struct {
	// Attempts is how often a record is tried in all. 0 means 5.
	Attempts int
	// Wait is how long to wait before the second attempt, and twice as long before each
	// further one. 0 means 100 ms.
	Wait time.Duration
	// MaxWait is the longest wait. 0 means 10 s.
	MaxWait time.Duration
}

func (o RetryOptions) withDefaults() RetryOptions {
	if o.Attempts == 0 {
		o.Attempts = 5
	}
	if o.Wait == 0 {
		o.Wait = 100 * time.Millisecond
	}
	if o.MaxWait == 0 {
		o.MaxWait = 10 * time.Second
	}
	return o
}

func (o RetryOptions) mistakes() error {
	return errors.Join(
		check(o.Attempts >= 0, "Retry", "Attempts", o.Attempts, "0 (5 of them) or more"),
		check(o.Wait >= 0, "Retry", "Wait", o.Wait, "0 (100 ms) or more"),
		check(o.MaxWait >= 0, "Retry", "MaxWait", o.MaxWait, "0 (10 s) or more"))
}

// Retry reads a record again that has failed with an error which calls itself temporary: one
// that has in it a method Temporary() bool, and that returns true. The shard is opened
// again at a place a few items before, and read from there, so whatever has failed starts
// anew: a file, or a function of a Map. It is best put right behind what fails, since all
// between is done again.
//
// An error that stays is a *RetryError. If it cost a record, the next call goes on behind that;
// else it is returned for ever.
func Retry[T any](s Stream[T], o RetryOptions) Stream[T] {
	mistakes := o.mistakes()
	o = o.withDefaults()
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		r := &retrying[T]{options: o, base: slices.Clone(mark), open: func(ctx context.Context, mark []byte) (Reader[T], error) {
			return s.open(ctx, pass, shard, mark)
		}, ctx: ctx}
		return r, r.retry(ctx, r.reopen(ctx), func() error { return r.reopen(ctx) })
	}, mistakes)
}

// RetryError is an error that called itself temporary and stayed.
type RetryError struct {
	// Attempts is how often it was tried.
	Attempts int
	// Err is the last attempt's error.
	Err error
}

// Error implements error.
func (e *RetryError) Error() string { return fmt.Sprintf("%v (%d attempts)", e.Err, e.Attempts) }

// Unwrap returns the last attempt's error.
func (e *RetryError) Unwrap() error { return e.Err }

// retryEvery is how many items there are between two places to open the shard at.
const retryEvery = 64

// retrying has no state of its own in marks: they are those of up.
type retrying[T any] struct {
	options RetryOptions
	open    func(ctx context.Context, mark []byte) (Reader[T], error)
	ctx     context.Context // that of Open, which readers are opened with
	up      Reader[T]       // nil if it could not be opened again
	base    []byte          // a place to open the shard at, nil for its beginning
	spare   []byte          // memory for the next
	since   int64           // items read since there
	broken  error           // what is returned for ever
}

func (r *retrying[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if r.broken != nil {
		return false, r.broken
	}
	if r.since >= retryEvery && r.up != nil {
		r.rebase()
	}
	if ok, err = r.first(ctx, item); err != nil && err != loader.Flush {
		ok, err = r.further(ctx, item, err)
	}
	if ok && err == nil {
		r.since++
	}
	return ok && err == nil, err
}

// first is the first attempt.
func (r *retrying[T]) first(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if r.up == nil {
		if err = r.reopen(ctx); err != nil {
			return false, err
		}
	}
	return r.up.Next(ctx, item)
}

// further is what comes of all attempts after the first, which has failed with err.
func (r *retrying[T]) further(ctx context.Context, item *Item[T], err error) (ok bool, _ error) {
	stuck := false
	err = r.retry(ctx, err, func() (err error) {
		if err = r.reopen(ctx); err == nil {
			ok, stuck, err = r.try(ctx, item)
		}
		return err
	})
	r.settle(err, stuck)
	return ok, err
}

// settle says where up stands after a failure that is not retried.
func (r *retrying[T]) settle(err error, stuck bool) {
	_, stayed := err.(*RetryError)
	switch {
	case err == nil || err == loader.Flush:
	case stayed && (stuck || r.up == nil):
		r.broken = err
	case r.up != nil:
		r.rebase()
	}
}

// retry makes attempts as long as the error is temporary. err is that of the first.
func (r *retrying[T]) retry(ctx context.Context, err error, attempt func() error) error {
	if !temporary(err) {
		return err
	}
	wait := min(r.options.Wait, r.options.MaxWait)
	for range r.options.Attempts - 1 {
		if !sleep(ctx, wait) {
			return errors.Join(context.Cause(ctx), r.close()) // the record is tried again by another call
		}
		wait = min(wait, r.options.MaxWait/2) * 2
		if err = attempt(); !temporary(err) {
			return err
		}
	}
	return &RetryError{Attempts: r.options.Attempts, Err: err}
}

// try is up's Next, and whether up stands behind a failure where it stood before: then it
// will not go on.
func (r *retrying[T]) try(ctx context.Context, item *Item[T]) (ok, stuck bool, err error) {
	before, noMark := r.up.AppendMark(nil)
	ok, err = r.up.Next(ctx, item)
	if temporary(err) && noMark == nil {
		behind, noMark := r.up.AppendMark(nil)
		stuck = noMark == nil && string(before) == string(behind)
	}
	return ok, stuck, err
}

// reopen opens the shard at the place where up stands, or would if it had not failed.
func (r *retrying[T]) reopen(ctx context.Context) error {
	if err := r.close(); err != nil {
		return err
	}
	up, err := r.open(r.ctx, r.base)
	if err != nil {
		return err
	}
	if err := orClose(up, func() error { return passOver(ctx, "Retry", up, r.since) }); err != nil {
		return err
	}
	r.up = up
	return nil
}

func (r *retrying[T]) close() error {
	if r.up == nil {
		return nil
	}
	up := r.up
	r.up = nil
	return up.Close()
}

// rebase makes the place where up stands the one to open the shard at, if it has a mark.
func (r *retrying[T]) rebase() {
	mark, err := r.up.AppendMark(r.spare[:0])
	if err == nil {
		r.base, r.spare, r.since = mark, r.base, 0
	}
}

func (r *retrying[T]) AppendMark(dst []byte) ([]byte, error) {
	if r.up == nil {
		return dst, loader.ErrNoMark
	}
	return r.up.AppendMark(dst)
}

func (r *retrying[T]) Close() error { return r.close() }

// temporary reports whether an error calls itself so.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return err != nil && errors.As(err, &t) && t.Temporary()
}

// sleep waits, and reports whether ctx is not done.
func sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
