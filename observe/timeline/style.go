package timeline

import "fmt"

// style is how a kind is drawn. The colours are Okabe and Ito's, which people with any kind
// of colour vision tell apart (https://jfly.uni-koeln.de/color/); what is idle is hatched,
// and each kind has a letter.
type style struct {
	kind       Kind
	letter     byte
	fill, text string
	name       string
}

const (
	ink   = "#24292f"
	faint = "#57606a"
	paper = "#ffffff"
	rule  = "#d0d7de"
	alert = "#D55E00" // vermilion: the hatching of what is idle
)

var styles = []style{
	{Reading, 'r', "#56B4E9", ink, "a worker reads samples"},
	{Filling, 'f', "#B9E0F7", ink, "a host slot is filled"},
	{Filled, '.', "#E8F4FB", ink, "filled, waits for its copy"},
	{Copying, 'c', "#E69F00", ink, "copy to the device"},
	{Converting, 't', "#CC79A7", ink, "transform"},
	{Computing, '#', "#009E73", "#ffffff", "compute"},
	{Fetching, 'd', "#0072B2", "#ffffff", "download"},
	{Body, 'b', "#C9C9C9", ink, "the loop's body"},
	{Idle, '-', "url(#idle)", ink, "nothing to do, and why"},
}

func styleOf(k Kind) *style {
	for i := range styles {
		if styles[i].kind == k {
			return &styles[i]
		}
	}
	return &styles[len(styles)-1]
}

// mark is what is written on a span: which batch, or why it is idle.
func (s *Span) mark() string {
	switch {
	case s.Kind == Idle:
		return whys[s.Why]
	case s.Kind == Reading && s.Samples == 1:
		return fmt.Sprint(s.Sample)
	case s.Batches > 1:
		return fmt.Sprintf("%d-%d", s.Batch, s.Batch+s.Batches-1)
	}
	return fmt.Sprint(s.Batch)
}
