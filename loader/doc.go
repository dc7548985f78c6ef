// Package loader says which samples make up which batch, and writes their bytes.
// It knows nothing of devices: it fills memory that somebody else supplies.
//
// # The parts
//
//	Dataset, Iterable   where samples come from: by number, or one after the other
//	Coster              what a dataset's samples cost, so that the dear ones begin early
//	Stream, ShardReader and in shards, each one after the other from any place
//	Field, Layout       what a sample consists of, and where it lies in a batch
//	Row                 one sample's place, lent to the code that writes it
//	Order               which sample is at which position of an epoch
//	Cursor, State       a place in the data, and what must be saved to return to it
//	Loader              all of the above with its Options: immutable, shareable
//	Which, Exclusion    what a step is made of, told without reading, and what is left out
//	Trace               what a step of a Stream is made of, which has to be read
//	Run                 one pass: a dispatcher and workers that fill slots of a Memory
//	loader/ranks        ranks in a grid of axes, and their parts of a sequence
//	loader/source       where bytes come from: paths, globs, whatever an fs.FS holds
//	loader/statefile    States in files
//	loader/records      files of fixed-length binary records
//	loader/images       folders of pictures
//	loader/tar          samples in tar files
//	loader/tfrecord     TensorFlow's records
//	loader/mds          folders of Mosaic's StreamingDataset
//	loader/idx          IDX files, the format of MNIST
//	loader/cifar        pictures of CIFAR-10 and CIFAR-100
//	loader/safetensors  tensors of safetensors files
//	loader/jsonl        values of files of JSON lines
//	loader/csv          rows of CSV files
//	loader/lines        lines of text files by number
//	loader/tokens       windows of files of tokens
//	loader/npy          NumPy's arrays
//	loader/stream       chains of operators over streams, for NewStream
//	loader/compose      datasets made of others: parts, mixes, samplers, maps, caches
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
// What is left out by Options.Exclude shifts nothing: see Exclusion. A batch size that
// changes by Options.BatchSizes depends on the place alone.
//
// Every rank makes the same number of steps, known before the first: see
// LastPolicy. With an Iterable, whose length nobody knows, this holds as long as
// the iterator gives the same samples on every rank.
//
// Every field of every sample in a batch was asked for by the code that writes the
// sample; a Read that never asks for one of its fields fails with an *UnwrittenError. A
// Read that asks for a field and writes only a part of it is not noticed in a normal
// build: the rest holds what another sample left there. With -tags invariants such a
// Read fails too if it leaves out eight bytes in a row or more, or four at a field's end;
// fewer could be the sample's own, and show only as a NaN where the field's type has
// one. So while you write a dataset:
//
//	go test -tags invariants ./...
//
// Samples of a field may differ in their first dimension: see Ragged. A batch of such a
// field is as long as its own longest sample, or has its samples one behind the other. What
// lies behind a sample's own elements, up to the batch's length, is the stated padding and
// never what an earlier batch left there; a Layout counts the maximum. A sample that does not
// tell its length fails, because no default is safe: the maximum would deliver what another
// sample left there.
//
// To resume an Iterable in the middle of an epoch, its iterator is started again and the
// samples before the place are skipped. FromSeqFunc gives its iterator the epoch and the
// seed, which is all that it may depend on. FromSeq is for an iterator that cannot start
// again: no sample is lost or given twice when a Run is closed, and whatever would need a
// second pass is an *OnePassError. A sample that owns something is an io.Closer, and is
// closed if no batch takes it; see Encoder.
//
// A Stream is cut into shards, whose number is part of its order. A shard is read by one
// rank. Its n-th sample has position n·S + i of S shards, and a rank reads what its shards
// have in the order of the positions: so the next sample follows from how many each shard
// has given, and from nothing that one would have to save besides. With equal global batches,
// and numbers of ranks that divide S, the global batches are the same samples until a shard
// ends, and with Options.Steps, where no shard does, for good. What a shard's sample is does
// not depend on other shards: one that is left out by Skip, or under SkipFailed, is replaced
// by the next of its own shard.
//
// A State of a Stream has a mark for each shard, and how many records to leave out behind it,
// at most a few hundred. A Run notes such marks as it reads, and works a State out only when
// it is asked for one. A reader without marks is exact too, but is read from the beginning.
// Each rank knows its own shards only; MergeStates gathers them, and any number of ranks up
// to that of the shards goes on from there.
//
// The ranks of a Stream can't know how many samples the others have. Either Options.Steps
// says how many steps an epoch has, or Options.Agree has them agree on each.
//
// A batch is delivered when it is full, or when its epoch or its source ends; or when its
// source says Flush: a live source, such as a channel of requests, does that when it has no
// other for now.
//
// A failure is an *Error, with its place and the user's own error. It is delivered after
// all batches before it. If several samples of a batch fail, it is the one at the lowest
// position, whichever worker came first. Panics and runtime.Goexit in user code are
// failures too.
//
// A Read under Options.ReadTimeout runs on a goroutine and in memory of its own, since
// nothing can stop it: one that is late can write to no batch. Nobody waits for it, neither
// the next batch nor Close; its goroutine lives until it returns, and what it uses must be
// there as long.
//
// # How a Run works
//
// The dispatcher takes a slot, enters the batch in the order of delivery, and hands its
// rows over; it takes the next when few rows are left that nobody has claimed. Several
// batches are open at once, at most as many as there are slots. A worker claims
// a few rows of the first open batch that has any, reads them, and claims again: so the
// first batch is shared by all and done first. The worker that is done with the last row
// of a batch completes it, and Next takes batches in the order in which they were opened.
//
// Under Workers: Auto a tuner compares, while the consumer waits, what is read with more and
// with fewer workers than there are. It takes no goroutine: a worker looks at it between two
// claims. Workers that are too many end after a claim, and are begun again when they are
// needed.
//
// Of a Dataset the rows that cost twice the average or more are begun early, by as many rows as
// the workers read in the time that one takes, and delivered in their turn (dear.go). So with
// w slots order costs next to nothing as long as w batches take as long to read as the slowest
// sample alone. What samples cost a Coster says, or it is learnt: a byte for each sample, once
// one is seen that takes a millisecond or more and twice as long as others.
//
// How many rows a worker claims follows from what samples took in its last claim: as many
// as take 50 µs, because a claim costs as much as a few small samples, and at least one.
// If samples turn out to take longer while other workers find no row to claim, an inspector
// tells the worker that it is late. Then it gives back the rows that it has not begun, and
// any worker can claim them.
//
// Each shard of a Stream has a goroutine that reads ahead, about as many samples as make two
// batches over all shards, into a queue. The dispatcher takes them from there in their order,
// and waits for the shard whose turn it is. Where samples may be left out that goroutine
// encodes them as well, because a row that was handed over can't be taken back.
//
// The rows of a ragged field are written as if each were as long as it may be, since a worker
// can't know the longest of its batch. The worker that completes the batch moves them
// together (compact.go). In place of that rows could be copied one by one, or by strides, to
// where they belong on a device; a copy each costs more than all of the moving, and every
// consumer would need both forms.
//
// An open batch counts the rows that are not done. A row is done when it was written, or
// skipped, or when it is known that it will not come.
//
//	R1  A slot is owned by exactly one of: the Memory, the Run, the caller of Next.
//	R2  A row is written by one worker, the one that has claimed it, and only until that
//	    worker gives it back or counts it as done.
//	R3  A batch is delivered only when no row is left to be done and each of its
//	    rows was written, and after every batch opened before it.
//	R4  After Close a slot goes back only if nothing can write to it any more;
//	    else it is quarantined until then.
//
// A Run allocates when it starts and when it sees a slot for the first time, and
// nothing for a batch.
package loader
