package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Options tunes a Queue. The zero value is ready to use.
type Options struct {
	// MaxWait is how long a request waits, from the call of Do, for others to fill its
	// batch, while a batch can begin. 0 means not at all: then requests that come while all
	// InFlight batches are under way travel together, and nobody waits for one that may never
	// come.
	MaxWait time.Duration
	// InFlight is the number of batches under way at once, from the moment that their requests
	// are chosen until they are answered. 0 means 3 with a device, for upload, compute and
	// download side by side, and 2 without. More of them carry no more, and each waits longer.
	InFlight int
	// Limit is how many requests may be open at once: encoded, waiting or in a batch. 0 means
	// 16 times what the batches in flight hold, and at least 1024.
	Limit int
	// TenantLimit is how many requests of one tenant may be open at once. 0 means Limit.
	TenantLimit int
	// Block makes Do wait for a place where there is none, in the order of coming, until its
	// context ends. Without it Do returns ErrFull or ErrTenantFull at once.
	Block bool
	// MaxSize is what Model.Size may say at most. 0 means that any size will do.
	MaxSize int64
	// PriorityStep is how much earlier a request counts as having come for each step of
	// its priority. 0 means 100 ms.
	PriorityStep time.Duration
	// Prefetch tunes the pipeline. Where they are 0 its Depth and Memory.HostSlots follow from
	// InFlight, and BatchesPerCopy is 1.
	Prefetch prefetch.Options
}

const (
	defaultInFlight     = 3
	defaultHostInFlight = 2
	defaultLimit        = 1024
	linesOfBatches      = 16
	defaultPriorityStep = 100 * time.Millisecond
	defaultCloseTimeout = 5 * time.Second
	mostInFlight        = 1 << 10
	longest             = 365 * 24 * time.Hour // times that priorities multiply don't overflow
)

// OptionError is a value that a parameter, or a field of Options or Model, can't have.
type OptionError struct {
	// Option is its name.
	Option string
	// Value is what was found, Want what may be there.
	Value any
	Want  string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("serve: %s is %v, want %s", e.Option, e.Value, e.Want)
}

// checks collects mistakes.
type checks []error

func (c *checks) that(ok bool, option string, value any, want string) {
	if !ok {
		*c = append(*c, &OptionError{Option: option, Value: value, Want: want})
	}
}

// validate adds every mistake in o.
func (o Options) validate(c *checks, sized bool) {
	c.that(o.MaxWait >= 0 && o.MaxWait <= longest, "MaxWait", o.MaxWait, "0 (not at all) to a year")
	c.that(o.InFlight >= 0 && o.InFlight <= mostInFlight, "InFlight", o.InFlight, fmt.Sprintf("0 (the default) to %d", mostInFlight))
	c.that(o.Limit >= 0, "Limit", o.Limit, "0 (the default) or more")
	c.that(o.TenantLimit >= 0, "TenantLimit", o.TenantLimit, "0 (Limit) or more")
	c.that(o.Limit <= 0 || o.TenantLimit <= o.Limit, "TenantLimit", o.TenantLimit, fmt.Sprintf("at most Limit (%d)", o.Limit))
	c.that(o.MaxSize >= 0, "MaxSize", o.MaxSize, "0 (any) or more")
	c.that(o.MaxSize <= 0 || sized, "MaxSize", o.MaxSize, "0: there is no Model.Size to say what a request's is")
	c.that(o.PriorityStep >= 0 && o.PriorityStep <= longest, "PriorityStep", o.PriorityStep, "0 (100 ms) to a year")
}

// withDefaults is o with its zero values replaced.
func (o Options) withDefaults(maxBatch, inFlight int) Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.InFlight, inFlight)
	def(&o.Limit, max(defaultLimit, linesOfBatches*o.InFlight*maxBatch))
	def(&o.TenantLimit, o.Limit)
	if o.PriorityStep == 0 {
		o.PriorityStep = defaultPriorityStep
	}
	p := &o.Prefetch
	def(&p.Depth, o.InFlight)
	def(&p.BatchesPerCopy, 1) // no batch waits for another
	def(&p.Memory.HostSlots, o.InFlight+1)
	if p.CloseTimeout == 0 {
		p.CloseTimeout = defaultCloseTimeout
	}
	return o
}

// validate adds every mistake in m.
func (m *Model[Req, Resp]) validate(c *checks) {
	c.that(len(m.In) > 0, "Model.In", "empty", "a field or more")
	c.that(len(m.Out) > 0, "Model.Out", "empty", "a field or more")
	c.that(m.Encode != nil, "Model.Encode", "nil", "a function")
	c.that(m.Decode != nil, "Model.Decode", "nil", "a function")
	for _, f := range m.Out {
		c.that(f.Ragged == nil, "Model.Out", f, "fields of one size: the rows of a ragged one are as long as their neighbours'")
	}
}

// err is all mistakes, with those that package loader finds in the fields.
func (c checks) err(in, out []loader.Field, maxBatch int) error {
	if len(c) == 0 {
		_, errIn := loader.NewLayout(in, maxBatch)
		_, errOut := loader.NewLayout(out, maxBatch)
		return errors.Join(errIn, errOut)
	}
	return errors.Join(c...)
}
