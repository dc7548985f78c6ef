// Package ends numbers the samples of several files as one sequence: those of the first file,
// then those of the second, and so on.
package ends

import (
	"math"
	"slices"
)

// Ends has for each file how many samples there are up to its end.
type Ends []int

// Len is the number of samples in all files.
func (e Ends) Len() int {
	if len(e) == 0 {
		return 0
	}
	return e[len(e)-1]
}

// Add adds a file of n samples. It reports false, and adds none, if an int can't count them
// all.
func (e *Ends) Add(n int64) bool {
	if n < 0 || n > int64(math.MaxInt-e.Len()) {
		return false
	}
	*e = append(*e, e.Len()+int(n))
	return true
}

// Locate is the file that sample index is in, and its number there.
func (e Ends) Locate(index int) (file, at int) {
	file, _ = slices.BinarySearch(e, index+1) // the first that ends behind it
	if file > 0 {
		index -= e[file-1]
	}
	return file, index
}
