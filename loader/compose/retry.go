package compose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/loader"
)

// RetryOptions tunes Retry. The zero value is ready
// to use.
type RetryOptions struct {
	// Attempts is how often a sample is read in all. 0 means 5.
	Attempts int
	// Wait is how long to wait before the second attempt, and twice as long before each
	// further one. 0 means 100 ms.
	Wait time.Duration
	// MaxWait is the longest wait. 0 means 10 s.
	MaxWait time.Duration
}

func (o RetryOptions) validate() error {
	return errors.Join(
		atLeast(0, "Retry: Attempts", o.Attempts),
		atLeast(0, "Retry: Wait", o.Wait),
		atLeast(0, "Retry: MaxWait", o.MaxWait))
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

// Retry has the samples of ds, and reads one again whose error says that it may pass:
// errors.As finds in it something with a method Temporary() bool that returns true, as
// errors of package net have. context.DeadlineExceeded is one of them: it stands for a time
// limit of the read's own, and where the context that Read was given is done nothing is
// tried again. Other errors and panics are not tried again either. When all attempts have
// failed the error is a *RetryError. It copies a sample once.
func Retry(ds loader.Dataset, o RetryOptions) (loader.Dataset, error) {
	p, err := newPart("Retry: ds", ds)
	if err := errors.Join(err, o.validate()); err != nil {
		return nil, err
	}
	return &retried{single: single{[1]part{p}}, options: o.withDefaults(), scratches: scratches{fields: p.fields}}, nil
}

// RetryError is a sample that could not be read in several attempts.
type RetryError struct {
	// Attempts is how many there were. Err is the error of the last.
	Attempts int
	Err      error
}

// Error implements error.
func (e *RetryError) Error() string {
	return fmt.Sprintf("%d attempts failed, the last: %v", e.Attempts, e.Err)
}

// Unwrap returns Err.
func (e *RetryError) Unwrap() error { return e.Err }

type retried struct {
	single
	options   RetryOptions
	scratches scratches
}

func (r *retried) Fields() []loader.Field { return r.part[0].fields }
func (r *retried) Fingerprint() uint64    { return fingerprint(kindRetry, r.part[:]) }

func (r *retried) Read(ctx context.Context, index int, row *loader.Row) error {
	return r.read(ctx, uint64(row.Epoch()), index, row)
}

// read reads into memory of its own: what a failed attempt has written, and the random
// numbers that it has drawn, are forgotten.
func (r *retried) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	s, err := r.scratches.get()
	if err != nil {
		return err
	}
	wait := min(r.options.Wait, r.options.MaxWait)
	for attempt := 1; ; attempt++ {
		sample, err := r.part[0].readTo(ctx, s, pass, index, row)
		if err == nil {
			row.CopyFrom(sample)
			r.scratches.put(s)
			return nil
		}
		if !temporary(err) || r.options.Attempts == 1 {
			return err
		}
		if attempt == r.options.Attempts {
			return &RetryError{Attempts: attempt, Err: err}
		}
		if !sleep(ctx, wait) {
			return errors.Join(context.Cause(ctx), err)
		}
		wait = min(2*wait, r.options.MaxWait)
	}
}

// temporary reports whether the error says of itself that it may pass.
func temporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

// sleep waits, and returns false if ctx is done before.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
