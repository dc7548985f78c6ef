package timeline

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"
)

const (
	svgWidth  = 1200
	svgLabels = 130 // room for the lanes' names
	laneStep  = 24
	laneBar   = 18
	mostLanes = 8 // of a group; the others are counted
	charWidth = 6.3
)

// WriteSVG draws it, at most 8 lanes of each group.
func (t *Timeline) WriteSVG(w io.Writer) error {
	d := &drawing{t: t, scale: float64(svgWidth-svgLabels-20) / math.Max(1, float64(t.Length))}
	d.lanes()
	d.axis()
	d.legend()
	for _, n := range t.Notes {
		d.notes(n)
	}
	_, err := io.WriteString(w, d.document())
	return err
}

type drawing struct {
	t     *Timeline
	scale float64         // pixels a nanosecond
	grid  strings.Builder // below all else
	body  strings.Builder
	y     float64
}

func (d *drawing) document() string {
	var b strings.Builder
	height := d.y + 16
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" font-family="Helvetica, Arial, sans-serif" font-size="11" role="img">`+"\n", svgWidth, height, svgWidth, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(d.t.Title))
	fmt.Fprintf(&b, `<defs><pattern id="idle" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="%s"/><line x1="0" y1="0" x2="0" y2="6" stroke="%s" stroke-width="2"/></pattern></defs>`+"\n", paper, alert)
	fmt.Fprintf(&b, `<rect width="%d" height="%.0f" fill="%s"/>`+"\n", svgWidth, height, paper)
	fmt.Fprintf(&b, `<text x="12" y="22" font-size="14" fill="%s">%s</text>`+"\n", ink, html.EscapeString(d.t.Title))
	b.WriteString(d.grid.String())
	b.WriteString(d.body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

func (d *drawing) text(x, y float64, anchor, colour, text string) {
	fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, html.EscapeString(text))
}

// x is where an instant is.
func (d *drawing) x(at time.Duration) float64 { return svgLabels + float64(at)*d.scale }

func (d *drawing) lanes() {
	d.y = 36
	for i := 0; i < len(d.t.Lanes); {
		group := d.t.Lanes[i].Group
		n := 0
		for ; i < len(d.t.Lanes) && d.t.Lanes[i].Group == group; i++ {
			if n++; n <= mostLanes {
				d.lane(&d.t.Lanes[i])
			}
		}
		if n > mostLanes {
			d.text(svgLabels, d.y+11, "start", faint, fmt.Sprintf("and %d more lanes of this kind: %s", n-mostLanes, group))
			d.y += 16
		}
		d.y += 5
	}
}

func (d *drawing) lane(l *Lane) {
	d.text(svgLabels-8, d.y+13, "end", ink, l.Name())
	fmt.Fprintf(&d.body, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`+"\n", svgLabels, d.y+laneBar, svgWidth-20, d.y+laneBar, rule)
	for _, s := range visible(l.Spans, time.Duration(0.5/d.scale)) {
		d.span(&s)
	}
	d.y += laneStep
}

// visible is spans of which those shorter than least are one with their neighbours of the same
// kind, so that a picture of many thousands is not larger than a screen can show.
func visible(spans []Span, least time.Duration) (out []Span) {
	for _, s := range spans {
		if n := len(out) - 1; n >= 0 && s.Took() < least && out[n].Kind == s.Kind && out[n].Why == s.Why && s.From-out[n].To < least {
			out[n].To = s.To
			continue
		}
		out = append(out, s)
	}
	return out
}

func (d *drawing) span(s *Span) {
	st := styleOf(s.Kind)
	x, w := d.x(s.From), math.Max(float64(s.Took())*d.scale, 0.4)
	fmt.Fprintf(&d.body, `<rect x="%.2f" y="%.1f" width="%.2f" height="%d" fill="%s"`, x, d.y, w, laneBar, st.fill)
	if w > 3 {
		fmt.Fprintf(&d.body, ` stroke="%s" stroke-width="0.6"`, ink)
	}
	fmt.Fprintf(&d.body, "><title>%s, %v</title></rect>\n", html.EscapeString(s.Name()), s.Took())
	mark := s.mark()
	room := charWidth*float64(len(mark)) + 6
	switch {
	case room > w:
	case s.Kind == Idle: // on a ground of its own, or the hatching would cross it
		fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`, x+w/2-room/2, d.y+2, room, laneBar-4, paper)
		d.text(x+w/2, d.y+13, "middle", ink, mark)
	default:
		d.text(x+w/2, d.y+13, "middle", st.text, mark)
	}
}

// axis is the time below the lanes.
func (d *drawing) axis() {
	step := niceStep(d.t.Length)
	for at := time.Duration(0); at <= d.t.Length && step > 0; at += step {
		fmt.Fprintf(&d.grid, `<line x1="%.1f" y1="32" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="2 4"/>`+"\n", d.x(at), d.x(at), d.y+4, rule)
		d.text(d.x(at), d.y+16, "middle", faint, at.String())
	}
	d.y += 28
}

// niceStep is the distance of about ten marks.
func niceStep(length time.Duration) time.Duration {
	for unit := time.Nanosecond; unit < 1<<60/10; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if length <= 11*n*unit {
				return n * unit
			}
		}
	}
	return length
}

// legend says what the colours mean, of those that are there.
func (d *drawing) legend() {
	x := float64(svgLabels)
	there := d.t.kinds()
	for i := range styles {
		st := &styles[i]
		if !there[st.kind] {
			continue
		}
		w := charWidth*float64(len(st.name)) + 34
		if x+w > svgWidth-20 {
			x = svgLabels
			d.y += 20
		}
		fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="16" height="12" fill="%s" stroke="%s" stroke-width="0.6"/>`+"\n", x, d.y, st.fill, ink)
		d.text(x+21, d.y+10, "start", ink, st.name)
		x += w
	}
	d.y += 24
}

func (t *Timeline) kinds() map[Kind]bool {
	there := map[Kind]bool{}
	for i := range t.Lanes {
		for j := range t.Lanes[i].Spans {
			there[t.Lanes[i].Spans[j].Kind] = true
		}
	}
	return there
}

// notes writes a sentence, over as many lines as it takes.
func (d *drawing) notes(sentence string) {
	const most = (svgWidth - svgLabels - 20) / 6 // letters
	line := ""
	flush := func() {
		d.text(svgLabels, d.y+10, "start", ink, line)
		d.y += 16
		line = ""
	}
	for word := range strings.FieldsSeq(sentence) {
		if len(line)+1+len(word) > most {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}
