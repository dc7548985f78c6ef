// Package compose makes datasets of datasets: a loader.Dataset of others, each small, lazy
// and good for any other composition.
//
//	Subset, Take, Skip       some of the samples
//	Split, SplitBy, SplitN   parts without a sample in common
//	Shuffle, Select          the samples in another order
//	Repeat, Concat           the samples several times; of several datasets
//	Zip                      the fields of several datasets in one sample
//
// All of them choose samples and move no byte: the dataset at the bottom writes into the
// batch. A sample costs a few nanoseconds for each of them and no memory, apart from
// Subset and Split, which take four bytes for each.
//
// # Passes and epochs
//
// What comes in what order is a pure function of the parameters and the epoch. A
// composition that draws or shuffles does it anew in each epoch, and anew in each time that
// a Repeat reads it: each time is a pass with a number of its own. The number of ranks,
// workers or machines changes nothing.
//
// A composition has an order of its own. A loader without Options.Shuffle keeps it; one
// with Options.Shuffle permutes all samples of the epoch, so that it keeps what they are
// and how often each comes, and not their order.
//
// # States and origins
//
// A composition is a loader.Fingerprinter: its fingerprint is made of its parameters and of
// those of its parts, so that a State is refused where the composition has changed. What a
// function does is not part of it. A composition is a loader.Composed too, so that
// loader.Which and errors lead to the sample of the dataset at the bottom.
//
// # Ownership
//
// A composition borrows its datasets for good, and asks for their length and fields once.
// It closes nothing: who opened a dataset closes it when the loaders have ended. One
// dataset may be part of several compositions.
package compose
