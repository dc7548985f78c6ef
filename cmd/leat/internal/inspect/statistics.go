package inspect

import (
	"maps"
	"math"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Moments are the number, the mean and the deviation of values, and their bounds.
type Moments struct {
	N         int64
	Mean      float64
	Min, Max  float64
	NotFinite int64 // values that are no numbers, or not finite, which count in nothing else
	squares   float64
}

// Deviation is the standard deviation of the values, which are all there are.
func (m *Moments) Deviation() float64 {
	if m.N == 0 {
		return 0
	}
	return math.Sqrt(m.squares / float64(m.N))
}

// add counts one value, as Welford does: B. P. Welford, Technometrics 4 (1962), 419.
func (m *Moments) add(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		m.NotFinite++
		return
	}
	if m.N == 0 {
		m.Min, m.Max = v, v
	}
	m.N++
	m.Min, m.Max = min(m.Min, v), max(m.Max, v)
	off := v - m.Mean
	m.Mean += off / float64(m.N)
	m.squares += off * (v - m.Mean)
}

// merge adds the values of another: T. F. Chan, G. H. Golub and R. J. LeVeque, 1979.
func (m *Moments) merge(o Moments) {
	if o.N > 0 && m.N > 0 {
		n := float64(m.N + o.N)
		off := o.Mean - m.Mean
		m.squares += o.squares + off*off*float64(m.N)*float64(o.N)/n
		m.Mean += off * float64(o.N) / n
		m.N, m.Min, m.Max = m.N+o.N, min(m.Min, o.Min), max(m.Max, o.Max)
	} else if o.N > 0 {
		notFinite := m.NotFinite
		*m = o
		m.NotFinite = notFinite
	}
	if o.N > 0 || o.NotFinite > 0 {
		m.NotFinite += o.NotFinite
	}
}

// mostCounts is how many different values are counted one by one.
const mostCounts = 1000

// A Count says how many samples have a value or a length.
type Count map[int64]int64

func (c Count) merge(o Count) {
	for v, n := range o {
		c[v] += n
	}
}

// Quantile is the value below or at which a share of the samples is.
func (c Count) Quantile(share float64) int64 {
	var all, before int64
	for _, n := range c {
		all += n
	}
	keys := slices.Sorted(maps.Keys(c))
	for _, v := range keys {
		before += c[v]
		if float64(before) >= share*float64(all) {
			return v
		}
	}
	return 0
}

// FieldStatistics is what the samples have in a field.
type FieldStatistics struct {
	Field loader.Field
	// Channels are the moments of each channel of pictures, and of all values in other fields;
	// none of text.
	Channels []Moments
	// Counts are the samples with each value, nil for a field that is no whole number or has
	// more than 1000 different ones.
	Counts Count
	// Lengths are the samples of each length, nil if the field is not ragged.
	Lengths Count
}

func newStatistics(fields []loader.Field) []FieldStatistics {
	all := make([]FieldStatistics, len(fields))
	for i, f := range fields {
		all[i].Field = f
		if !isText(f) {
			all[i].Channels = make([]Moments, 1)
			if g, ok := asPicture(f); ok {
				all[i].Channels = make([]Moments, g.channels)
			}
		}
		if len(f.Shape) == 0 && f.DType != dtype.Float16 && f.DType != dtype.BFloat16 && f.DType != dtype.Float32 && f.DType != dtype.Float64 {
			all[i].Counts = Count{}
		}
		if f.Ragged != nil {
			all[i].Lengths = Count{}
		}
	}
	return all
}

// add counts the sample that r has read.
func (s *FieldStatistics) add(r *reader) {
	if isText(s.Field) {
		s.Lengths[int64(len(loader.Value[uint8](r.row, s.Field.Name)))]++
		return
	}
	if s.Counts != nil {
		if n, ok := r.integer(s.Field); ok {
			s.count(n)
		}
	}
	values := r.values(s.Field)
	if s.Lengths != nil {
		element := 1
		for _, n := range s.Field.Shape[1:] {
			element *= n
		}
		s.Lengths[int64(len(values)/max(element, 1))]++
	}
	g, ok := asPicture(s.Field)
	if !ok || g.channels == 1 {
		for _, v := range values {
			s.Channels[0].add(v)
		}
		return
	}
	for channel := range g.channels {
		for y := range g.height {
			for x := range g.width {
				s.Channels[channel].add(values[g.at(y, x, channel)])
			}
		}
	}
}

func (s *FieldStatistics) count(n int64) {
	if s.Counts[n]++; len(s.Counts) > mostCounts {
		s.Counts = nil
	}
}

func (s *FieldStatistics) merge(o FieldStatistics) {
	for i := range s.Channels {
		s.Channels[i].merge(o.Channels[i])
	}
	if s.Counts != nil && o.Counts != nil {
		s.Counts.merge(o.Counts)
	}
	if o.Counts == nil || len(s.Counts) > mostCounts {
		s.Counts = nil
	}
	if s.Lengths != nil {
		s.Lengths.merge(o.Lengths)
	}
}
