// Package probe measures the machine it stands on: how fast copies are by size and
// kind of memory, what calls and pinning cost, what overlaps what, how many streams
// pay and what their priorities do, what a graph's replay, a kernel's read of pinned
// memory and a copy to another device cost, and how a pipeline of a stated batch
// behaves by depth. From the figures it says what to use.
//
// Times of work on the device come from the device's own events, those of calls
// from the host's clock, both as the median of several runs. All data is fresh and
// random, and what arrives is compared with what was sent.
package probe
