package cuda

import (
	"sync/atomic"
	"time"
)

// A doze is how the wait for an event that was made to sleep rather than spin is
// slept through. The driver's own wait spins before it sleeps: on an H200 under
// driver 580 it took 100 µs of CPU for a wait of a millisecond, a tenth of a core
// for who recycles buffers at that pace. Asking costs one microsecond and a timer
// a few. So where an event's waits have been long enough to tell, most of the next
// one is slept through, and the rest asked for in short naps.
//
// It never waits longer by more than a nap than the driver would. What is shorter
// than briefest, or much longer than expected, is left to the driver.
type doze struct{ expected atomic.Int64 } // ns; of the event's waits, smoothed

const (
	briefest  = 250 * time.Microsecond
	shortNap  = 50 * time.Microsecond
	patience  = 4 // times what was expected
	napShare  = 16
	sureShare = 8 // of what is expected, all but this share is slept through at once
)

// through sleeps until p is complete, if what is known of the event lets it. It
// reports false if the driver is to wait.
func (z *doze) through(d *gpu, p pending) (done bool, err error) {
	expected := time.Duration(z.expected.Load())
	if expected < briefest || p.query == 0 {
		return false, nil
	}
	start := time.Now()
	time.Sleep(expected - expected/sureShare)
	first := true
	for time.Since(start) < patience*expected {
		if done, err = d.done(p); done || err != nil {
			break
		}
		first = false
		time.Sleep(max(shortNap, expected/napShare))
	}
	if first { // it was complete already, nobody knows since when
		z.expected.Store(int64(expected - expected/sureShare))
	} else {
		z.learn(time.Since(start))
	}
	return done, err
}

// learn takes a wait's time into what is expected.
func (z *doze) learn(took time.Duration) {
	old := z.expected.Load()
	if old == 0 {
		z.expected.Store(int64(took))
		return
	}
	z.expected.Store(old + (int64(took)-old)/4)
}
