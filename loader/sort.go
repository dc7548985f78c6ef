package loader

import "sort"

// sortBy orders s by compare, and leaves equal ones in their order. The sorts of package
// slices are code of their own for each type of element, ten kilobytes of every program.
func sortBy[T any](s []T, compare func(a, b T) int) []T {
	sort.SliceStable(s, func(i, j int) bool { return compare(s[i], s[j]) < 0 })
	return s
}
