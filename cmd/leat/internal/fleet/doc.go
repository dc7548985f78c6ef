// Package fleet reads the pages of package observe/ui of several ranks, and finds the one
// that the others wait for.
//
// Ranks that make their steps together are equally fast: the slow one shows in what the
// others do meanwhile, which their pipelines book as work of their device or their loop. So
// ranks are compared by what a step of each waited for by itself: producers, a slow sample, a
// host slot, leases, the copy, the transform. The rank that waits longest, beyond the median
// of the others, is the one that all wait for. Where no rank does, and their steps are
// unequally long, they don't wait for each other, and the one whose own work takes longest is
// named.
package fleet
