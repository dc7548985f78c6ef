package stream

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// together is the stream that open makes of several, with the mistakes of the operator.
func together[T, U any](operator string, all []Stream[T], open opener[U], mistakes ...error) Stream[U] {
	out := then(all[0], open, mistakes...)
	for i, s := range all[1:] {
		out = joined(operator, out, s, i+1)
	}
	return out
}

// joined is out, of which s is a part too, as number i from 0.
func joined[T, U any](operator string, out Stream[T], s Stream[U], i int) Stream[T] {
	var err error
	if out.shards >= 1 && s.shards >= 1 {
		err = check(s.shards == out.shards, operator, fmt.Sprintf("the number of shards of stream %d", i), s.shards,
			fmt.Sprintf("%d, as stream 0 has", out.shards))
	}
	out.err = errors.Join(out.err, s.Err(), err)
	out.fingerprint = combined(out.fingerprint, s.fingerprint)
	out.draws = max(out.draws, s.draws)
	out.appended = put(out.appended, s.appended...)
	return out
}

// combined is the fingerprint of two that are read together; 0 if none has one.
func combined(a, b uint64) uint64 {
	if a == 0 && b == 0 {
		return 0
	}
	return mix.Hash(a, b)
}

// again is a pass within a pass: the same one for the first, and then each with a seed of
// its own.
func again(pass loader.Pass, number int) loader.Pass {
	if number > 0 {
		pass.Seed = mix.Hash(pass.Seed, uint64(number))
	}
	return pass
}

// as is s with an operator and its arguments put to the fingerprint.
func (s Stream[T]) as(operator string, values ...uint64) Stream[T] {
	s.fingerprint = argument(s.fingerprint, operator, values...)
	return s
}

// argument is a fingerprint with an operator's arguments; 0 if nothing is known of the
// contents.
func argument(fingerprint uint64, operator string, values ...uint64) uint64 {
	if fingerprint == 0 {
		return 0
	}
	for i := range len(operator) {
		values = append(values, uint64(operator[i]))
	}
	return mix.Hash(append(values, fingerprint)...)
}
