// Package waitmodel works out who waits for whom in a pipeline of package prefetch: when
// each batch is filled, copied, delivered and computed on, and what every figure of
// prefetch.Stats must then be, to the nanosecond.
//
// It shares no code with the pipeline. It knows the pipeline's parts, what each of them
// does next and what it needs for that, and how long reads, copies, steps and the
// loop's body take. From there it goes from instant to instant. Between two instants
// nothing changes, so the time between them belongs as a whole to what the parts lack
// there; the figures are the sums. prefetch's tests hold the real pipeline against it in
// virtual time.
//
// # The parts
//
//	device     streams in order, engines that run one copy or kernel at a time
//	loader     opens the batches in order, each when there is a free host slot
//	workers    an idle one claims the next row of the first batch that has one
//	uploader   takes filled batches in order, waits for a free device slot, and submits
//	           the copy behind what still uses that slot
//	consumer   calls Next, submits a step, works, and has the batch released
//
// What several parts do at one instant they do one after the other, again and again until
// none has anything left to do. Where the order matters, because one instant is the end
// of two things that are not connected, the pipeline itself is free to choose: with
// several batches a copy, whether a batch that is filled just then still travels; with
// several compute streams, whether one that finishes just then counts as free. Durations that
// don't add up to such coincidences avoid that.
package waitmodel
