package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A kind is one way in which a user's code misbehaves.
type kind string

const (
	fails   kind = "fails"   // returns an error
	panics  kind = "panics"  // panics with an error
	goexits kind = "goexits" // ends its goroutine
	forgets kind = "forgets" // leaves a field unwritten
	sleeps  kind = "sleeps"  // takes its time, and heeds its context
	ignores kind = "ignores" // takes its time, and does not

	// Of iterators alone.
	yieldsNil   kind = "yields nil"           // a sample that is none
	yieldsOn    kind = "yields on"            // after the loop has ended
	panicsLate  kind = "panics in clean-up"   // after the loop has ended, by itself or not
	goexitsLate kind = "goexits in clean-up"  // the same
	failsEarly  kind = "panics before any"    // in Samples itself
	yieldsTwice kind = "goes on after errors" // yields an error and then samples
)

// A trouble is what happens at one sample, or to an iterator at one position.
type trouble struct {
	At    int
	Epoch int // -1 is every one
	Kind  kind
	Wraps int           // in errs, for those that fail
	For   time.Duration // for those that take their time
}

func (t trouble) String() string {
	s := fmt.Sprintf("%d %s", t.At, t.Kind)
	switch t.Kind {
	case fails, panics, yieldsTwice:
		s += fmt.Sprintf(" (%v)", errs[t.Wraps])
	case sleeps, ignores:
		s += fmt.Sprintf(" %v", t.For)
	}
	if t.Epoch >= 0 {
		s += fmt.Sprintf(" in epoch %d", t.Epoch)
	}
	return s
}

// breaks is whether the sample can't be read.
func (t trouble) breaks() bool { return t.Kind != sleeps && t.Kind != ignores }

// errs are errors of the user's own, some of which pass on what another pipeline of
// this module, a file or a context has returned: none of them ends anything but the
// sample it is for.
var errs = []error{
	errors.New("plain"), io.EOF, loader.ErrEpochEnd, loader.ErrEnd, loader.ErrClosed, prefetch.ErrEpochEnd,
	prefetch.ErrClosed, prefetch.ErrLeases, context.Canceled, context.DeadlineExceeded,
	&loader.StuckError{}, &loader.Error{},
}

// errUser is in every error of a trouble.
var errUser = errors.New("the user's own")

func (t trouble) err() error {
	if t.Wraps == 0 {
		return fmt.Errorf("%w at %d", errUser, t.At)
	}
	return fmt.Errorf("%w at %d: %w", errUser, t.At, errs[t.Wraps])
}

// meet does what the trouble is, as far as a sample's code can; skip is the field
// left unwritten, -1 if none is.
func (t trouble) meet(ctx context.Context) (skip int, err error) {
	switch t.Kind {
	case fails:
		return -1, t.err()
	case panics:
		panic(t.err())
	case goexits:
		runtime.Goexit()
	case forgets:
		return t.At % len(data{}.fields()), nil
	case ignores:
		time.Sleep(t.For)
	case sleeps:
		select {
		case <-time.After(t.For):
		case <-ctx.Done():
			return -1, ctx.Err()
		}
	}
	return -1, nil
}

// lazy is a context of the user's own that takes its time to say whether it is done:
// other goroutines get ahead of who asks.
type lazy struct{ context.Context }

func (c lazy) Err() error {
	for range 50 {
		runtime.Gosched()
	}
	return c.Context.Err()
}

// left are the choices without those that LEAT_FUZZ_WITHOUT names, separated by commas:
// a search goes on while one fault is known and not yet mended.
func left[T ~string](kinds []T) (all []T) {
	without := strings.Split(os.Getenv("LEAT_FUZZ_WITHOUT"), ",")
	for _, k := range kinds {
		if !slices.Contains(without, string(k)) {
			all = append(all, k)
		}
	}
	return all
}

// enabled is whether a choice is left.
func enabled(choice string) bool { return len(left([]string{choice})) > 0 }

// drawTroubles is a few of the kinds given, at the first n positions.
func drawTroubles(t *rapid.T, label string, n, most int, kinds ...kind) []trouble {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trouble {
		tr := trouble{
			At:    rapid.IntRange(0, max(n-1, 0)).Draw(t, "at"),
			Epoch: rapid.SampledFrom([]int{-1, 0, 1, 2}).Draw(t, "epoch"),
			Kind:  rapid.SampledFrom(kinds).Draw(t, "kind"),
		}
		switch tr.Kind {
		case fails, panics, yieldsTwice:
			tr.Wraps = rapid.IntRange(0, len(errs)-1).Draw(t, "wraps")
		case sleeps, ignores:
			tr.For = time.Duration(rapid.SampledFrom([]int{1, 10, 100, 1000, 30_000}).Draw(t, "for")) * time.Millisecond
		}
		return tr
	}), 0, most).Draw(t, label)
}
