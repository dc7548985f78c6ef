// Package affinity moves goroutines to some of the machine's processors: those that write
// to memory are faster on the processors next to it.
package affinity
