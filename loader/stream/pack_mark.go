package stream

import (
	"context"
	"errors"
	"math"
	"strconv"
)

// packMark is the mark of a packer. A window is a number for each piece's document, counted
// from From, first token and length.
type packMark struct {
	Rest    int       `json:"rest,omitempty"` // tokens of the last document that are in windows, if not all are
	Ready   int       `json:"ready,omitempty"`
	Windows [][]int64 `json:"windows,omitempty"` // the ready ones first
	trailMark
}

func (p *packer[Tok]) AppendMark(dst []byte) ([]byte, error) {
	out := append(dst, '{')
	if p.from < len(p.rest.Value) {
		out = append(out, `"rest":`...)
		out = append(strconv.AppendInt(out, int64(p.from), 10), ',')
	}
	if len(p.ready) > 0 {
		out = append(out, `"ready":`...)
		out = append(strconv.AppendInt(out, int64(len(p.ready)), 10), ',')
	}
	if len(p.ready)+len(p.open) > 0 {
		out = append(out, `"windows":[`...)
		for _, w := range p.ready {
			out = p.appendWindow(out, w)
		}
		for _, w := range p.open {
			out = p.appendWindow(out, w)
		}
		out = append(out[:len(out)-1], `],`...)
	}
	out, err := p.appendTo(out)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (p *packer[Tok]) appendWindow(dst []byte, w *filling[Tok]) []byte {
	from := p.places[0].items
	dst = append(dst, '[')
	for _, of := range w.pieces {
		dst = append(strconv.AppendInt(dst, of.item-from, 10), ',')
		dst = append(strconv.AppendInt(dst, int64(of.from), 10), ',')
		dst = append(strconv.AppendInt(dst, int64(of.n), 10), ',')
	}
	dst[len(dst)-1] = ']'
	return append(dst, ',')
}

func (p *packer[Tok]) start(ctx context.Context, open func([]byte) (Reader[[]Tok], error), mark []byte) error {
	if mark == nil {
		up, err := open(nil)
		if err == nil {
			p.trail = newTrail(up, 0, nil, packEvery)
		}
		return err
	}
	var m packMark
	if err := parse("Pack", mark, &m); err != nil {
		return err
	}
	windows, err := p.windows(m)
	if err != nil {
		return &MarkError{Operator: "Pack", Err: err}
	}
	p.trail, err = openTrail(ctx, "Pack", open, m.trailMark, packEvery, func(number int64, item Item[[]Tok]) error {
		p.rest, p.from = item, len(item.Value)
		for _, w := range windows {
			if err := w.again(number, item); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.Rest < 0 || m.Rest > len(p.rest.Value) {
		return closing(p.trail, &MarkError{Operator: "Pack", Err: errors.New("the document that it is in is shorter")})
	}
	if m.Rest > 0 {
		p.from = m.Rest
	}
	p.ready, p.open = windows[:m.Ready:m.Ready], windows[m.Ready:]
	return nil
}

// windows are those of a mark, without their tokens.
func (p *packer[Tok]) windows(m packMark) ([]*filling[Tok], error) {
	open := len(m.Windows) - m.Ready
	if m.Ready < 0 || m.Ready > p.options.Open+2 || open < 0 || open > p.options.Open {
		return nil, errors.New("it has more or fewer windows than it can have")
	}
	var windows []*filling[Tok]
	for _, numbers := range m.Windows {
		w := p.begin()
		if len(numbers) == 0 || len(numbers)%3 != 0 {
			return nil, errors.New("a window has pieces of three numbers, one or more")
		}
		left, last := int64(p.window), int64(0)
		for ; len(numbers) > 0; numbers = numbers[3:] {
			item, from, n := numbers[0], numbers[1], numbers[2]
			if item < last || item >= m.Read || from < 0 || from > math.MaxInt || n < 1 || n > left {
				return nil, errors.New("a window has pieces that it can't have")
			}
			w.pieces = append(w.pieces, piece{item: m.From + item, from: int(from), n: int(n)})
			left, last = left-n, item
		}
		windows = append(windows, w)
	}
	return windows, nil
}

// again copies the pieces of a document that is read again.
func (w *filling[Tok]) again(number int64, document Item[[]Tok]) error {
	for i, of := range w.pieces {
		if of.item != number {
			continue
		}
		if of.from > len(document.Value) || of.n > len(document.Value)-of.from {
			return errors.New("a document is shorter than it was")
		}
		if i == 0 {
			w.origin = document.Origin
		}
		w.copy(document, of, i+1)
	}
	return nil
}
