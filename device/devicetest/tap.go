package devicetest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device/driver"
)

// A Rule changes what happens to some calls of one method. With none of Swallow,
// Err and Delay it changes nothing and only counts.
type Rule struct {
	// Op is the method.
	Op Op
	// Event and Stream, where not empty, restrict the rule to calls on an event or
	// a stream whose name contains the text.
	Event, Stream string
	// Kernel restricts the rule to launches of a kernel whose name contains it.
	Kernel string
	// Nth is the number of the one call changed among those that match, from 1.
	// 0 changes every one.
	Nth int64
	// Swallow reports success without making the call.
	Swallow bool
	// Err is returned without making the call. The Tap wraps it in a driver.Error,
	// as a driver does.
	Err error
	// Delay holds the caller back before the call.
	Delay time.Duration
}

// Armed is a Rule in force.
type Armed struct {
	rule           Rule
	matched, fired atomic.Int64
}

// Fired is how many calls the rule has changed: 0 tells a test that its mutation
// never took place.
func (a *Armed) Fired() int64 { return a.fired.Load() }

// Matched is how many calls the rule could have changed.
func (a *Armed) Matched() int64 { return a.matched.Load() }

// Tap is a driver.Device that passes calls on to another, counts them, and
// changes those that its rules name. It is safe for concurrent use, and with no
// rules armed it adds neither a lock nor an allocation to a call.
//
// A Tap knows the names of the streams and events that were made through it, and
// of the events of other devices that are Taps. It is a driver.Peer and a
// driver.Grapher as far as the device beneath is. What a graph's nodes do is no call: the
// calls that are captured are counted and changed, and LaunchGraph is one.
type Tap struct {
	driver.Device
	counts [ops]atomic.Int64
	rules  atomic.Pointer[[]*Armed]

	mu      sync.RWMutex
	streams map[driver.Stream]string
	events  map[driver.Event]string
}

var (
	_ driver.Peer    = (*Tap)(nil)
	_ driver.Grapher = (*Tap)(nil)
	_ driver.Wrapper = (*Tap)(nil)
)

// NewTap makes a Tap over d and takes it: closing the Tap closes d.
func NewTap(d driver.Device) *Tap {
	return &Tap{
		Device:  d,
		streams: make(map[driver.Stream]string),
		events:  make(map[driver.Event]string),
	}
}

// Count is how many calls of op were made, changed ones included.
func (t *Tap) Count(op Op) int64 { return t.counts[op].Load() }

// Calls is Count of every op, for comparing before and after.
func (t *Tap) Calls() map[Op]int64 {
	calls := make(map[Op]int64, ops)
	for i := range t.counts {
		if n := t.counts[i].Load(); n > 0 {
			calls[Op(i)] = n
		}
	}
	return calls
}

// Arm puts a rule in force. Its calls are counted from now on. Where several
// rules match one call, all delays are served, then the oldest other rule wins.
func (t *Tap) Arm(r Rule) *Armed {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &Armed{rule: r}
	next := []*Armed{a}
	if old := t.rules.Load(); old != nil {
		next = append(append([]*Armed(nil), *old...), a)
	}
	t.rules.Store(&next)
	return a
}

// Disarm removes all rules.
func (t *Tap) Disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules.Store(nil)
}

// subject is what a call is about, for the rules to match.
type subject struct {
	stream driver.Stream
	event  driver.Event
	of     *Tap // where another device's event was made; nil is here
	kernel string
}

// pass counts a call and applies the rules to it. With skip true the caller
// returns err at once, which is nil for a swallowed call.
func (t *Tap) pass(op Op, s subject) (skip bool, err error) {
	t.counts[op].Add(1)
	rules := t.rules.Load()
	if rules == nil {
		return false, nil
	}
	for _, a := range *rules {
		if !t.matches(a.rule, op, s) {
			continue
		}
		n := a.matched.Add(1)
		if a.rule.Nth != 0 && a.rule.Nth != n {
			continue
		}
		a.fired.Add(1)
		if a.rule.Delay > 0 {
			time.Sleep(a.rule.Delay)
		}
		if !skip && (a.rule.Swallow || a.rule.Err != nil) {
			skip, err = true, t.wrap(op, a.rule.Err)
		}
	}
	return skip, err
}

func (t *Tap) matches(r Rule, op Op, s subject) bool {
	if r.Op != op || !strings.Contains(s.kernel, r.Kernel) {
		return false
	}
	if r.Event == "" && r.Stream == "" {
		return true
	}
	of := t
	if s.of != nil {
		of = s.of
	}
	return strings.Contains(of.eventName(s.event), r.Event) && strings.Contains(t.streamName(s.stream), r.Stream)
}

func (t *Tap) eventName(e driver.Event) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.events[e]
}

func (t *Tap) streamName(s driver.Stream) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.streams[s]
}

func (t *Tap) wrap(op Op, err error) error {
	if err == nil {
		return nil
	}
	return &driver.Error{Op: op.String(), Device: driver.DeviceName(t.Properties()), Err: err}
}

// Memory, and every method below, is driver.Device's.
func (t *Tap) Memory() (free, total int64, err error) {
	if skip, err := t.pass(Memory, subject{}); skip {
		return 0, 0, err
	}
	return t.Device.Memory()
}

func (t *Tap) Synchronize(ctx context.Context) error {
	if skip, err := t.pass(Synchronize, subject{}); skip {
		return err
	}
	return t.Device.Synchronize(ctx)
}

func (t *Tap) Close() error {
	if skip, err := t.pass(Close, subject{}); skip {
		return err
	}
	return t.Device.Close()
}
