// Package timeline is a pipeline's last steps as people draw them on a blackboard: one lane
// for each worker, slot and engine, what each did at every moment, and why it had nothing to
// do. observe.Recorder makes them.
//
// A Timeline is written as the JSON of Chrome's tracing, which Perfetto and chrome://tracing
// show and Read reads, and drawn as SVG and as text. The colours are told apart by people who
// don't see red and green, and none carries a meaning alone.
package timeline
