package stream

import (
	"errors"
	"math"
	"strconv"
)

// cacheMark is the mark of a Cache and of a FileCache.
type cacheMark struct {
	N      int64 `json:"n"`
	Failed int64 `json:"failed,omitempty"` // records behind those items
	From   int64 `json:"from"`             // items before At
	At     raw   `json:"at"`
}

// parse reads a mark of a cache, and returns that of the stream below.
func (m *cacheMark) parse(operator string, mark []byte) ([]byte, error) {
	if err := parse(operator, mark, m); err != nil {
		return nil, err
	}
	at, err := inner(operator, m.At)
	return at, errors.Join(err,
		outside(operator, "n", m.N, 0, math.MaxInt64),
		outside(operator, "from", m.From, 0, m.N),
		outside(operator, "failed", m.Failed, 0, mostFailed))
}

// appendCacheMark appends the mark behind n items and failures, from a place on.
func appendCacheMark(dst []byte, n, failed int64, from place) []byte {
	out := append(dst, `{"n":`...)
	out = strconv.AppendInt(out, n, 10)
	if failed > 0 {
		out = append(out, `,"failed":`...)
		out = strconv.AppendInt(out, failed, 10)
	}
	out = append(out, `,"from":`...)
	out = strconv.AppendInt(out, from.items, 10)
	out = appendGiven(append(out, `,"at":`...), from.mark)
	return append(out, '}')
}
