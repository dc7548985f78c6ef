// Package compose makes datasets of datasets: a loader.Dataset of others, each small, lazy
// and good for any other composition.
//
//	Subset, Take, Skip       some of the samples
//	Filter, FilterRead       those that a function keeps
//	Split, SplitBy, SplitN   parts without a sample in common
//	Shuffle, Select          the samples in another order
//	ByLength                 those of similar length beside each other
//	Repeat, Concat           the samples several times; of several datasets
//	Mix, MixSteps            samples of several datasets by weights
//	Weighted, Balanced       samples drawn by weights; classes equally often
//	Zip                      the fields of several datasets in one sample
//	Map                      what a function makes of each sample
//	Retry                    samples read again where that may help
//	CacheMemory, CacheFile   samples kept, so that they are read once
//
// All up to Zip choose samples and move no byte: the dataset at the bottom writes
// into the batch. A sample costs tens of nanoseconds at most for each of them and no
// memory, but for four bytes a sample of the dataset in Subset, Filter, Split, Balanced and
// ByLength, and twelve in Weighted.
//
// # Passes and epochs
//
// What comes in what order is a pure function of the parameters and the epoch. A
// composition that draws or shuffles does it anew in each epoch, and anew in each time that
// a Repeat reads it: each time is a pass with a number of its own. The number of ranks,
// workers or machines changes nothing. Datasets of other packages are told the loader's
// epoch, by Row.Epoch, in every pass.
//
// A composition has an order of its own. A loader without Options.Shuffle keeps it; one
// with Options.Shuffle permutes all samples of the epoch, so that it keeps what they are
// and how often each comes, and not their order.
//
// # States and origins
//
// A composition is a loader.Fingerprinter: its fingerprint is made of its parameters and of
// those of its parts, so that a State is refused where the composition has changed. What a
// function does is not part of it. A composition is a loader.Composed too: Loader.Which
// tells which sample of the dataset at the bottom was read.
//
// # Ownership
//
// A composition borrows its datasets for good, and asks for their length and fields once.
// It closes nothing: who opened a dataset closes it when the loaders have ended, and so
// does who made a FileCache. One dataset may be part of several compositions. Close closes
// all that some are made of.
package compose
