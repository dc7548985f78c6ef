package loader

// poisonByte is what a row's bytes are before the sample is read, in builds with
// the tag invariants: a NaN in every floating-point type, so that a byte that
// Read forgot to write spoils the loss at once.
const poisonByte = 0xff

// poison fills rows lo to hi of all fields.
func poison(l *Layout, mem []byte, lo, hi int) {
	for field, f := range l.fields {
		rows := l.Rows(field, mem, hi)[int64(lo)*f.RowBytes:]
		for i := range rows {
			rows[i] = poisonByte
		}
	}
}
