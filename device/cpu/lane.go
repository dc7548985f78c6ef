package cpu

import (
	"math"
	"runtime/debug"
	"time"
)

// lane runs operations for real, on goroutines of which at most width exist at
// once; 0 means any number. Its fields are guarded by the device's mutex.
type lane struct {
	device *Device
	name   string
	width  int
	active int
	ready  opList
	run    func()      // loop, made once so that starting it allocates nothing
	timer  *time.Timer // of a lane of width 1, for operations that last
}

func newLane(d *Device, name string, width int) *lane {
	l := &lane{device: d, name: name, width: width}
	l.run = l.loop
	return l
}

func (l *lane) offer(o *op) {
	l.ready.push(o)
	if l.width == 0 || l.active < l.width {
		l.active++
		l.device.spawned()
		go l.run()
	}
}

func (l *lane) clear() { l.ready = opList{} }

// loop runs what is ready and ends when nothing is.
func (l *lane) loop() {
	d := l.device
	var o *op
	defer func() {
		if o != nil { // its body has ended this goroutine
			stack := debug.Stack()
			d.mu.Lock()
			d.finish(o, &Goexit{Stack: stack})
		}
		l.active--
		d.left()
		d.unlock()
	}()
	debug.SetPanicOnFault(true)
	d.mu.Lock()
	for {
		o = l.ready.take(math.MaxInt64, before)
		if o == nil {
			return
		}
		o.running = true
		o.start = d.now()
		d.unlock()
		err := l.perform(o)
		o.end = d.now()
		d.trace(o, l.name, 0)
		d.mu.Lock()
		d.finish(o, err)
	}
}

// perform is an operation from its start to its end. With an adversary it lasts.
func (l *lane) perform(o *op) error {
	if o.kind == launch && o.launch.Kernel == busy {
		l.sleep(busyTime(&o.launch.Args))
	}
	a := l.device.adversary
	if a == nil {
		return guard(o)
	}
	a.begin(o)
	if a.LateRead {
		l.sleep(o.cost)
	}
	if err := guard(o); err != nil {
		return err
	}
	if !a.LateRead {
		l.sleep(o.cost)
	}
	return a.end(o)
}

// sleep makes the running operation last. The timer is the lane's, since time.Sleep
// allocates one for every new goroutine.
func (l *lane) sleep(d time.Duration) {
	switch {
	case d <= 0:
		return
	case l.timer == nil:
		l.timer = time.NewTimer(d)
	default:
		l.timer.Reset(d)
	}
	<-l.timer.C
}

// before is the order in which ready operations get an engine.
func before(a, b *op) bool {
	switch {
	case a.rank != b.rank:
		return a.rank < b.rank
	case a.kind.computes() && a.stream.priority != b.stream.priority:
		return a.stream.priority < b.stream.priority
	case a.ready != b.ready:
		return a.ready < b.ready
	}
	return a.seq < b.seq
}

// lanes are the engines of a plain device.
type lanes struct{ h2d, d2h, link, compute *lane }

func newLanes(d *Device) *lanes {
	return &lanes{
		h2d: newLane(d, "H2D", 1), d2h: newLane(d, "D2H", 1), link: newLane(d, "link", 1), compute: newLane(d, "compute", 1),
	}
}

func (l *lanes) offer(o *op) {
	switch o.kind {
	case copyH2D:
		l.h2d.offer(o)
	case copyD2H:
		l.d2h.offer(o)
	case copyPeer:
		l.link.offer(o)
	default:
		l.compute.offer(o)
	}
}

func (l *lanes) settled() {}

func (l *lanes) clear() {
	l.h2d.clear()
	l.d2h.clear()
	l.link.clear()
	l.compute.clear()
}

func (l *lanes) copyEngines() int { return 2 }
