// Package slots is the one idea that package prefetch is made of, for all that batches pass
// through on the device.
//
// A Slot is memory that one stream writes and others read, with an event that says that it
// is filled, and one for each reader that says that it is read. Two rules order its use, lap
// after lap, whoever writes and whoever reads:
//
//	overwrite after read   BeginWrite waits for the last lap's reads, which EndRead records
//	read after filled      BeginRead waits for filled, which EndWrite records
//
// The waits are those of streams, on the device: no call here waits for the device, except
// Rest, and nothing is allocated once a Slot is made, except an event for the first read on
// each peer of its device.
//
// A Ring is the slots of one stage, of which the free ones wait to be filled, and Computes
// are the streams that read them.
package slots
