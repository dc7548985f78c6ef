package tfrecord

import (
	"fmt"
	"math"

	"github.com/leat-go/leat/loader"
)

// Options tunes Open and NewStream. The zero value is ready to use.
type Options struct {
	// MaxBytes is the largest record. 0 means 1 GiB.
	MaxBytes int64
	// Mapped maps files that are paths into memory, for Open; see source.Mapped.
	Mapped bool

	// Shards is the number of shards of a stream: file i belongs to shard i%Shards. 0 means one
	// for each file.
	Shards int
	// Shuffle has a stream read the files of each shard in another order in each pass.
	Shuffle bool
}

const defaultBytes = 1 << 30

func (o Options) filled() (Options, error) {
	const most = math.MaxInt - frame
	if o.MaxBytes < 0 || o.MaxBytes > most {
		return o, &loader.OptionError{Package: "tfrecord", Option: "MaxBytes", Value: o.MaxBytes, Want: fmt.Sprintf("0 (%d) to %d", defaultBytes, most)}
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	return o, nil
}
