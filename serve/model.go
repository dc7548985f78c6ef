package serve

import (
	"context"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Model says how a request becomes a row of a batch, and a row of results an answer. All
// but Size is required.
type Model[Req, Resp any] struct {
	// In are the fields of a row that goes in, ragged ones too.
	In []loader.Field
	// Encode writes a request to a row, every field of it. It is called once for a request,
	// by several goroutines at the same time, each with another one. ctx is that of Do, which
	// does not return before Encode does. A value that is too long for its field is a
	// *loader.SizeError of loader.Write, which Encode returns.
	Encode func(ctx context.Context, req Req, row *loader.Row) error
	// Out are the fields of a row of results, of one size each.
	Out []loader.Field
	// Decode makes an answer of a row of results. It is called in the order of the batch, by
	// one goroutine at a time. Value, Values and Copy read the row. A request that it makes of
	// its own Queue is decoded behind it, so that it must not wait for one: that ends with the
	// request's context or with Close, and all others wait as long.
	Decode func(a Answer) (Resp, error)
	// Size says how large a request is, in what unit you like, for Options.MaxSize: before
	// Encode spends any time on it. Nil means that any size will do.
	Size func(req Req) int64
}

// HostStep computes the results of a batch on the host. b's fields are read by
// prefetch.Column, and those of out written, each in every row: one that is never asked for
// is a *loader.UnwrittenError. Both are borrowed until it returns. An error is that of all
// requests of the batch, and of no others. ctx ends when the Queue is closed, and not with
// that of a request. As Decode it must not wait for requests of its own Queue.
type HostStep func(ctx context.Context, b prefetch.Batch, out Answers) error

// Caller says for whom a request is. The zero value is one tenant among others.
type Caller struct {
	// Tenant is the name of who shares the Queue with others: a customer, a program.
	Tenant string
	// Priority orders the requests of one tenant: see Options.PriorityStep. 0 is usual.
	Priority int8
}
