package loader

// unknown is the length of a sample that has not told it.
const unknown = -1

func newLengths(l *Layout) []int32 {
	if len(l.ragged) == 0 {
		return nil
	}
	return make([]int32, len(l.ragged))
}

// SetLen says that the sample has n elements along the first dimension of the ragged field
// of that name: 0 to its maximum, else the error is a *SizeError. Whoever has borrowed the
// field's memory, by Column or Bytes, calls it before or after that; of several calls the
// last counts. A sample of length 0 need not ask for the memory. A name that no ragged field
// has is a *FieldError.
func (r *Row) SetLen(field string, n int) error {
	i := r.find(field)
	if i < 0 || r.layout.fields[i].ragged < 0 {
		return &FieldError{Name: field, Type: "ragged", Fields: r.layout.names()}
	}
	f := &r.layout.fields[i]
	if n < 0 || n > f.Shape[0] {
		return &SizeError{Field: f.Field, Got: n, Want: f.Shape[0], Length: true}
	}
	r.lengths[f.ragged] = int32(n)
	return nil
}

// used are the bytes of a field that count. They must be told how many.
func (r *Row) used(field int) []byte {
	b := r.bytes(field)
	if f := &r.layout.fields[field]; f.ragged >= 0 {
		b = b[:int64(r.lengths[f.ragged])*f.element]
	}
	return b
}

// forgetLengths is for a sample that has told none. It need not tell those of fields whose
// maximum is 0.
func (r *Row) forgetLengths() {
	for i, field := range r.layout.ragged {
		r.lengths[i] = unknown
		if r.layout.fields[field].Shape[0] == 0 {
			r.lengths[i] = 0
		}
	}
}

// excuseEmpty counts fields as asked for of which the sample has no elements.
func (r *Row) excuseEmpty() {
	for i, n := range r.lengths {
		if n == 0 {
			r.asked.add(r.layout.ragged[i])
		}
	}
}

// untold is an *UnwrittenError for the first length that the sample has not told.
func (r *Row) untold() error {
	for i, n := range r.lengths {
		if n == unknown {
			return &UnwrittenError{Field: r.layout.fields[r.layout.ragged[i]].Field, Length: true}
		}
	}
	return nil
}

// keepLengths keeps the lengths of the sample that is in a row.
func (b *batch) keepLengths(row int, lengths []int32) {
	copy(b.lengths[row*len(lengths):], lengths)
}

// savedRow is what a row holds, kept in memory of its own.
type savedRow struct {
	bytes   []byte // those of the fields that count, one field behind the other
	lengths []int32
}

// save keeps what the row holds, which must be written.
func (s *savedRow) save(row *Row) {
	s.bytes, s.lengths = s.bytes[:0], append(s.lengths[:0], row.lengths...)
	for field := range row.layout.Written() {
		s.bytes = append(s.bytes, row.used(field)...)
	}
}

// load writes it to another row of the same layout.
func (s *savedRow) load(row *Row) {
	copy(row.lengths, s.lengths)
	b := s.bytes
	for field := range row.layout.Written() {
		row.asked.add(field)
		b = b[copy(row.used(field), b):]
	}
}
