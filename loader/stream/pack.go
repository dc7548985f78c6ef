package stream

import (
	"context"
	"fmt"
	"slices"

	"github.com/leat-go/leat/loader"
)

// Packed is a window of tokens of one or more documents, or of pieces of them: segments. It
// belongs to whoever has got it.
type Packed[Tok any] struct {
	// Tokens are those of the segments, one after the other, and then PackOptions.Pad up to
	// the window's length.
	Tokens []Tok
	// Segments says for each token which segment it belongs to, from 1; 0 for padding.
	Segments []int32
	// Positions says for each token which one of its segment it is, from 0; 0 for padding.
	Positions []int32
}

// PackOptions tunes Pack. The zero value is ready to use.
type PackOptions[Tok any] struct {
	// Open is how many windows are filled at a time. More of them are filled better, and more
	// is read again at a restart. 0 means 16.
	Open int
	// Pad is the token that fills what is left of a window.
	Pad Tok
}

// Pack puts documents into windows of a length in tokens: each into the first of the open
// windows that has room for all of it. If none has, the oldest is given as it is, and
// another is begun. A document longer than a window is cut: into pieces of a window's length,
// and what is left, which is put where there is room, as another segment. No token is lost;
// empty documents are.
//
// To learn the next token, let a window be one token longer than the model's: inputs are
// Tokens[:T], targets Tokens[1:]. The target of a segment's last token is not its own; it
// is where Segments[i] differs from Segments[i+1].
//
// A window's origin is that of its first document. A mark holds which documents are in the
// windows under way, and none of the tokens: the documents are read again.
func Pack[Tok any](s Stream[[]Tok], window int, o PackOptions[Tok]) Stream[Packed[Tok]] {
	mistakes := []error{
		check(window >= 1 && window <= maxWindow, "Pack", "window", window, fmt.Sprintf("1 to %d", maxWindow)),
		check(o.Open >= 0 && o.Open <= maxOpen, "Pack", "Open", o.Open, fmt.Sprintf("0 (16 of them) to %d", maxOpen)),
	}
	if o.Open == 0 {
		o.Open = 16
	}
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[Packed[Tok]], error) {
		p := &packer[Tok]{window: window, options: o}
		open := func(mark []byte) (Reader[[]Tok], error) { return s.open(ctx, pass, shard, mark) }
		return p, p.start(ctx, open, mark)
	}, mistakes...).as("Pack", uint64(window), uint64(o.Open))
}

const (
	maxWindow = 1 << 28
	maxOpen   = 1 << 16
	// packEvery is how many documents there are between two places to read again from.
	packEvery = 16
)

// packer fills windows. Which piece of which document is where is kept with each of them.
type packer[Tok any] struct {
	*trail[[]Tok]
	window  int
	options PackOptions[Tok]
	ready   []*filling[Tok] // to be given, in order
	open    []*filling[Tok] // the oldest first
	rest    Item[[]Tok]     // the document that was read last
	from    int             // what of it is in windows
	spare   []*filling[Tok]
}

// filling is a window that is being filled.
type filling[Tok any] struct {
	out    Packed[Tok]
	origin loader.Origin
	used   int
	pieces []piece // in order
}

// piece is a segment: a part of a document.
type piece struct {
	item    int64 // the document
	from, n int   // its tokens
}

func (p *packer[Tok]) Next(ctx context.Context, item *Item[Packed[Tok]]) (ok bool, err error) {
	for {
		switch {
		case len(p.ready) > 0:
			*item = p.give()
			return true, nil
		case p.from < len(p.rest.Value):
			p.place()
			continue
		}
		p.from = 0
		ok, err := p.next(ctx, &p.rest)
		if !ok || err != nil {
			p.rest = Item[[]Tok]{}
		}
		switch {
		case err != nil:
			return false, err
		case ok:
			if len(p.rest.Value) == 0 && ctx.Err() != nil { // else there could be empty ones for ever
				return false, context.Cause(ctx)
			}
		case len(p.open) == 0:
			return false, nil
		default:
			p.ready, p.open = p.open, p.ready // which is empty
		}
	}
}

// place puts the next piece of the document into a window.
func (p *packer[Tok]) place() {
	n := min(len(p.rest.Value)-p.from, p.window)
	i := slices.IndexFunc(p.open, func(w *filling[Tok]) bool { return p.window-w.used >= n })
	if i < 0 {
		if len(p.open) == p.options.Open {
			p.finish(0)
		}
		i = len(p.open)
		p.open = append(p.open, p.begin())
	}
	w := p.open[i]
	w.add(p.rest, piece{item: p.items - 1, from: p.from, n: n})
	if p.from += n; w.used == p.window {
		p.finish(i)
	}
}

// begin makes an empty window.
func (p *packer[Tok]) begin() *filling[Tok] {
	w := &filling[Tok]{}
	if n := len(p.spare); n > 0 {
		w, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	numbers := make([]int32, 2*p.window)
	*w = filling[Tok]{pieces: w.pieces[:0], out: Packed[Tok]{
		Tokens: make([]Tok, p.window), Segments: numbers[:p.window:p.window], Positions: numbers[p.window:],
	}}
	return w
}

// add appends a piece of a document.
func (w *filling[Tok]) add(document Item[[]Tok], of piece) {
	if w.pieces = append(w.pieces, of); len(w.pieces) == 1 {
		w.origin = document.Origin
	}
	w.copy(document, of, len(w.pieces))
}

// copy appends the tokens of a piece.
func (w *filling[Tok]) copy(document Item[[]Tok], of piece, segment int) {
	copy(w.out.Tokens[w.used:], document.Value[of.from:of.from+of.n])
	for i := range of.n {
		w.out.Segments[w.used+i] = int32(segment)
		w.out.Positions[w.used+i] = int32(i)
	}
	w.used += of.n
}

// finish makes an open window ready.
func (p *packer[Tok]) finish(i int) {
	p.ready = append(p.ready, p.open[i])
	p.open = slices.Delete(p.open, i, i+1)
}

// give returns the first window that is ready.
func (p *packer[Tok]) give() Item[Packed[Tok]] {
	w := p.ready[0]
	p.ready = slices.Delete(p.ready, 0, 1)
	for i := w.used; i < p.window; i++ {
		w.out.Tokens[i] = p.options.Pad
	}
	item := Item[Packed[Tok]]{Value: w.out, Origin: w.origin}
	w.out = Packed[Tok]{}
	p.spare = append(p.spare, w)
	p.forget(p.oldest())
	return item
}

// oldest is the number of the oldest document that is to be read again.
func (p *packer[Tok]) oldest() int64 {
	oldest := p.items
	if p.from < len(p.rest.Value) {
		oldest--
	}
	for _, ws := range [][]*filling[Tok]{p.ready, p.open} {
		for _, w := range ws {
			oldest = min(oldest, w.pieces[0].item)
		}
	}
	return oldest
}
