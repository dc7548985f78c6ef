// Package observe says who waited for whom in a pipeline of package prefetch, and what to
// change.
//
//	rec := observe.NewRecorder(observe.Options{})
//	pf, err := prefetch.New(compute, ld, prefetch.Options{Recorder: rec})
//	before := observe.Take(pf)
//	…                                  // 200 steps
//	last := observe.Take(pf).Sub(before)
//	fmt.Print(last.Explain())          // sentences: the bottleneck, the evidence, the change
//	fmt.Print(last)                    // the table
//	rec.Timeline("run").WriteJSON(file) // for Perfetto, Chrome, and leat timeline
//
// # Two accounts
//
// A step's time is divided twice, each time without a rest.
//
// The host's account is of the loop: from one call of Next to the next one, in which Next
// waited, by what the batch lacked, and then the body worked. It is exact and of all steps.
// Where a GPU works on what the loop submits, the loop runs ahead of it until all slots are
// taken, so the host's account alone blames the loader for time in which the GPU had enough
// to do.
//
// The device's account is of the compute stream: from the end of one batch's work to the end
// of the next one's. It worked, or had nothing to do: because the copy was under way, or
// because the host had not handed the batch over. What the host did at those instants, as its
// own account tells, is then what the device waited for. It comes from timed events, of
// uploads that are timed in bursts of 8, at most every 32 ms, which costs less than 1%; with
// prefetch.Options.Timing every upload is. It is there for one compute stream.
//
// # Instants of two clocks
//
// A device's timed events tell differences between its own instants. Where its zero lies on
// the host's clock is found once, at rest, and kept right by what must hold: nothing starts
// before it was submitted, and a host slot is free only after the copy out of it.
package observe
