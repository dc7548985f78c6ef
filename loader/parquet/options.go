package parquet

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leat-go/leat/loader"
)

// Options tunes Open and NewStream. The zero value is ready to use.
type Options struct {
	// Columns are the names of the columns that are read, of those at the top. nil means all. Others
	// cost nothing.
	Columns []string
	// Masks has columns that may be null, and for each a field of uint8 that is 1 where there is a
	// value. Where there is none the column's own field is filled with zeros, or is of length 0. A
	// null in any other column is an error.
	Masks map[string]string
	// MaxBytes is the most memory that one row group takes when it is decoded. 0 means 2 GiB.
	MaxBytes int64
	// CacheBytes is the most memory for row groups that are kept. One at least is. 0 means 1 GiB.
	CacheBytes int64

	// Shards is the number of shards of a stream: file i belongs to shard i%Shards. 0 means one
	// for each file.
	Shards int
	// Shuffle has a stream read the files of each shard in another order in each pass.
	Shuffle bool
}

func (o Options) filled() (Options, error) {
	const defaultMax, defaultCache = min(2<<30, math.MaxInt), 1 << 30
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "parquet", Option: option, Value: value, Want: want})
		}
	}
	check(o.MaxBytes >= 0, "MaxBytes", o.MaxBytes, fmt.Sprintf("0 (%d) or more", defaultMax))
	check(o.CacheBytes >= 0, "CacheBytes", o.CacheBytes, fmt.Sprintf("0 (%d) or more", defaultCache))
	check(o.Columns == nil || len(o.Columns) > 0, "Columns", "empty", "nil (all) or one or more")
	for i, name := range o.Columns {
		check(slices.Index(o.Columns, name) == i, fmt.Sprintf("Columns[%d]", i), name, "each column once")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = int64(defaultMax)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCache
	}
	return o, errors.Join(wrong...)
}
