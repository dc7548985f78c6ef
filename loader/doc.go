// Package loader says which samples make up which batch, and writes their bytes.
// It knows nothing of devices: it fills memory that somebody else supplies.
//
// # The rooms
//
//	Dataset, Iterable   where samples come from: by number, or one after the other
//	Field, Layout       what a sample consists of, and where it lies in a batch
//	Row                 one sample's place, lent to the code that writes it
//	Order               which sample is at which position of an epoch
//	Cursor, State       a place in the data, and what must be saved to return to it
//	Loader              all of the above with its Options: immutable, shareable
//	Run                 one pass: a dispatcher and workers that fill slots of a Memory
//	loader/idx          IDX files, the format of MNIST
//
// # What may be relied on
//
// The data is the same whatever the machine. The order is a function of the
// seed, the epoch and the number of samples: a keyed bijection, so it takes no
// memory and can be entered anywhere. Ranks take their rows inside each global
// batch, so a step trains on the same samples for any number of them with the
// same global batch. A sample's random numbers depend on the seed, the epoch and
// its position. Workers, slots and scheduling change nothing.
//
// Every rank makes the same number of steps, known before the first: see
// LastPolicy. With an Iterable, whose length nobody knows, this holds as long as
// the iterator gives the same samples on every rank.
//
// Every byte that a batch holds was written for it: a sample that leaves a field out
// fails, and with the tag invariants one that leaves a part out does too.
//
// An Iterable is begun again wherever a place in it is gone on from; FromSeqFunc gives
// its iterator the epoch and the seed, all that it may depend on. What cannot begin
// again is for FromSeq: nothing that it gives is lost or given twice when a Run is
// closed, and what would need a second pass is an *OnePassError. A sample that owns
// something is an io.Closer, and is closed where no batch takes it; see Encoder.
//
// A failure carries its place (Error) and the user's own error, is delivered
// after all batches before it, and is the one at the lowest position of its
// batch, whichever worker came first. Panics and runtime.Goexit in user code are
// failures too.
//
// # How a Run works
//
// The dispatcher takes a slot, enters the batch in the order of delivery, and
// hands its rows to the workers in chunks. Several batches are open at once, as
// many as there are slots; workers take chunks in order, so the first batch is
// shared by all and done first. Who finishes the last chunk of a batch completes
// it, and Next takes batches in the order in which they were opened.
//
//	R1  A slot is owned by exactly one of: the Memory, the Run, the caller of Next.
//	R2  A row is written by one worker, and only between the opening of its batch
//	    and the giving up of that chunk's share.
//	R3  A batch is delivered only when all shares are given up and each of its
//	    rows was written, and after every batch opened before it.
//	R4  After Close a slot goes back only if nothing can write to it any more;
//	    else it is quarantined until then.
//
// A Run allocates when it starts and when it sees a slot for the first time, and
// nothing for a batch.
package loader
