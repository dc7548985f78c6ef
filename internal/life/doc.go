// Package life says how what a pipeline hands round may change hands: three small
// state machines without locks, memory or time. Packages pinnedpool and prefetch change
// the states of their buffers, batches and pipelines by these functions and in no other
// way, and internal/slotmodel explores the same functions in every order of events.
package life
