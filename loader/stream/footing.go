package stream

import (
	"bytes"

	"github.com/leat-go/leat/loader"
)

// footing tells whether a reader that fails again has got on since it failed before: a record
// that can't be read is passed over, while a reader that is broken stays where it is.
type footing struct {
	mark, spare []byte
	err         error // why there is no mark
}

// moved asks behind a failure; again says that the call before has failed too.
func (f *footing) moved(again bool, up interface{ AppendMark([]byte) ([]byte, error) }) bool {
	mark, err := up.AppendMark(f.spare[:0])
	f.err = err
	if err != nil {
		return true // nobody knows
	}
	stands := again && bytes.Equal(mark, f.mark)
	f.mark, f.spare = mark, f.mark
	return !stands
}

// lost is why there is no mark behind the failure, nil if there is one.
func (f *footing) lost() error {
	if f.err != nil {
		return loader.ErrNoMark
	}
	return nil
}
