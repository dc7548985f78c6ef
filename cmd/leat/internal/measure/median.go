// Package measure times work on a device by the device's own events, as the median
// of several runs.
package measure

import (
	"cmp"
	"slices"
)

// Median is the middle one of s, of an even number the smaller of the two. It
// panics if there is none.
func Median[T cmp.Ordered](s []T) T {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(len(sorted)-1)/2]
}
