package stream

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/leat-go/leat/loader"
)

// ParallelMap is Map with a number of goroutines for each shard that is read, for an f that
// takes long: more than a few microseconds. What it gives, and in which order, is the same.
// A further goroutine reads s, up to two values for each worker ahead.
//
// The goroutines begin with the first Next and are joined by Close, which waits for f. ctx
// of f is that of Open, and is cancelled by Close.
func ParallelMap[T, U any](s Stream[T], workers int, f func(ctx context.Context, value T) (U, error)) Stream[U] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[U], error) {
		p, err := openParallel[T, U](ctx, "ParallelMap", s, workers, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		p.begin = func() func(context.Context, uint64, T) (U, error) {
			return func(ctx context.Context, _ uint64, value T) (U, error) { return f(ctx, value) }
		}
		return p, nil
	}, workersOf("ParallelMap", workers), needs(f == nil, "ParallelMap", "f")).as("Map")
}

// ParallelMapRand is MapRand as ParallelMap is Map: the random numbers of a value are those
// that MapRand gives it, whichever goroutine has it.
func ParallelMapRand[T, U any](s Stream[T], workers int, f func(ctx context.Context, random *rand.Rand, value T) (U, error)) Stream[U] {
	draws := s.draws
	out := then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[U], error) {
		p, err := openParallel[T, U](ctx, "ParallelMapRand", s, workers, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		p.begin = func() func(context.Context, uint64, T) (U, error) {
			draw := newDraw(pass, shard, draws) // of one goroutine
			return func(ctx context.Context, n uint64, value T) (U, error) {
				draw.seed(n)
				return f(ctx, draw.random, value)
			}
		}
		return p, nil
	}, workersOf("ParallelMapRand", workers), needs(f == nil, "ParallelMapRand", "f")).as("MapRand")
	out.draws++
	return out
}

func workersOf(operator string, workers int) error {
	return check(workers >= 1 && workers <= maxWorkers, operator, "workers", workers, "1 to "+strconv.Itoa(maxWorkers))
}

func openParallel[T, U any](ctx context.Context, operator string, s Stream[T], workers int, pass loader.Pass, shard int, mark []byte) (*parallel[T, U], error) {
	up, m, err := openAhead(ctx, operator, s, pass, shard, mark)
	if err != nil {
		return nil, err
	}
	p := &parallel[T, U]{up: up, workers: workers, base: slices.Clone(given(m.At)), before: m.Before, since: m.Read}
	if p.base == nil {
		p.lost = noMarks(up)
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p, nil
}

const maxWorkers = 65536 // as in loader.Options

// aheadMark is the mark of an operator that reads ahead: a place before, and how many items
// have been given since.
type aheadMark struct {
	Before int64 `json:"before,omitempty"` // items before At
	Read   int64 `json:"read"`
	At     raw   `json:"at"`
}

// openAhead opens s behind the items that were given.
func openAhead[T any](ctx context.Context, operator string, s Stream[T], pass loader.Pass, shard int, mark []byte) (Reader[T], aheadMark, error) {
	var m aheadMark
	if mark == nil {
		up, err := s.open(ctx, pass, shard, nil)
		return up, m, err
	}
	if err := parse(operator, mark, &m); err != nil {
		return nil, m, err
	}
	if _, err := inner(operator, m.At); err != nil {
		return nil, m, err
	}
	if err := errors.Join(outside(operator, "read", m.Read, 0, math.MaxInt64/2), outside(operator, "before", m.Before, 0, math.MaxInt64/2)); err != nil {
		return nil, m, err
	}
	up, err := s.open(ctx, pass, shard, given(m.At))
	if err != nil {
		return nil, m, err
	}
	err = orClose(up, func() error { return passOver(ctx, operator, up, m.Read) })
	return up, m, err
}

// parallel has these goroutines, which end when ctx is cancelled: a feeder, which reads up
// and hands jobs out in order, and the workers. Next takes the jobs in that order.
//
// A job belongs to the feeder until it is in todo, then to a worker until it is done, then
// to Next, and then to the feeder again.
type parallel[T, U any] struct {
	up      Reader[T]                                                           // the feeder's while that runs
	begin   func() func(ctx context.Context, number uint64, value T) (U, error) // makes what a worker calls
	workers int
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	free  chan *job[T, U] // that the feeder may take
	order chan *job[T, U] // in the order of up
	todo  chan *job[T, U] // for the workers

	// What follows is Next's.
	current *job[T, U] // that it waits for
	ended   bool
	broken  error  // how it ended, if not by itself
	base    []byte // a place of up, nil for the beginning
	before  int64  // items before it
	since   int64  // items given or left out since there
	lost    error  // why there is no place
}

// job is what one Next of up has returned.
type job[T, U any] struct {
	item  Item[T]
	n     uint64 // the item's number in the shard
	ok    bool
	value U
	err   error         // of up, or of f
	read  bool          // whether up has returned an item
	last  bool          // whether nothing comes after it
	done  chan struct{} // of one element

	placed bool   // whether the feeder has tried to mark the place before
	mark   []byte // the place
	lost   error  // why it has none
}

// placeEvery is how many items there are between two places. One more is behind each failure,
// so that it doesn't matter what becomes of the record when it is read again.
const placeEvery = 64

func (p *parallel[T, U]) start() {
	n := 2*p.workers + 1
	p.free, p.order, p.todo = make(chan *job[T, U], n), make(chan *job[T, U], n), make(chan *job[T, U], n)
	for range n {
		p.free <- &job[T, U]{done: make(chan struct{}, 1)}
	}
	p.running.Add(1 + p.workers)
	go p.feed(uint64(p.before + p.since))
	for range p.workers {
		go p.work()
	}
}

// feed reads up, whose next item is number n, until that ends, or breaks.
func (p *parallel[T, U]) feed(n uint64) {
	defer p.running.Done()
	since, behind := int64(0), false // whether the place before is to be kept in any case
	for {
		var j *job[T, U]
		select {
		case j = <-p.free:
		case <-p.ctx.Done():
			return
		}
		j.n = n
		j.placed = since >= placeEvery || behind
		j.last = p.read(j) || !j.ok && j.err == nil
		if j.placed {
			since, behind = 0, j.lost != nil
		}
		behind = behind || j.err != nil && j.err != loader.Flush
		j.read = j.ok && j.err == nil
		last := j.last
		p.order <- j // has room for all
		if j.read {
			since++
			n++
			p.todo <- j
			continue
		}
		j.done <- struct{}{}
		if last {
			return
		}
	}
}

// read is up's Next, and AppendMark before if the job is placed. A panic, or the end of the
// goroutine, is the failure of the reader, and nothing comes after it.
func (p *parallel[T, U]) read(j *job[T, U]) (broken bool) {
	broken = true
	defer func() {
		if v := recover(); v != nil {
			j.ok, j.err = false, &loader.PanicError{Value: v, Stack: debug.Stack()}
		} else if broken { // by runtime.Goexit: feed will not go on
			j.ok, j.err, j.last = false, &loader.GoexitError{Stack: debug.Stack()}, true
			p.order <- j
			j.done <- struct{}{}
		}
	}()
	if j.placed {
		j.mark, j.lost = p.up.AppendMark(j.mark[:0])
	}
	j.ok, j.err = p.up.Next(p.ctx, &j.item)
	return false
}

// work does jobs. A worker whose goroutine f has ended is replaced.
func (p *parallel[T, U]) work() {
	ended, f := false, p.begin()
	defer func() {
		if !ended {
			p.running.Add(1)
			go p.work()
		}
		p.running.Done()
	}()
	for {
		select {
		case j := <-p.todo:
			p.do(j, f)
		case <-p.ctx.Done():
			ended = true
			return
		}
	}
}

func (p *parallel[T, U]) do(j *job[T, U], f func(context.Context, uint64, T) (U, error)) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			j.err = &loader.PanicError{Value: v, Stack: debug.Stack()}
		} else if !returned {
			j.err = &loader.GoexitError{Stack: debug.Stack()}
		}
		j.done <- struct{}{}
	}()
	j.value, j.err = f(p.ctx, j.n, j.item.Value)
	returned = true
}

func (p *parallel[T, U]) Next(ctx context.Context, item *Item[U]) (ok bool, err error) {
	if p.free == nil {
		p.start()
	}
	for !p.ended {
		if err := p.wait(ctx); err != nil {
			return false, err
		}
		ok, err := p.take(item)
		if ok || err != nil || p.ended {
			return ok, err
		}
	}
	return false, p.broken
}

// wait is for the next job in order to be done.
func (p *parallel[T, U]) wait(ctx context.Context) error {
	if p.current == nil {
		select {
		case p.current = <-p.order:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ctx.Done(): // then the feeder may have ended
			return context.Cause(p.ctx)
		}
	}
	select {
	case <-p.current.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// take is what has become of the job that is done. Neither an item nor an error is one that f has
// left out, or the end.
func (p *parallel[T, U]) take(item *Item[U]) (ok bool, err error) {
	j := p.current
	p.current = nil
	if j.placed {
		p.lost = j.lost
		if j.lost == nil {
			p.base, j.mark, p.before, p.since = j.mark, p.base, p.before+p.since, 0
		}
	}
	switch {
	case !j.read:
		err = j.err
		if j.last {
			p.ended, p.broken = true, err
		}
	case j.err == nil:
		*item, ok = Item[U]{Value: j.value, Origin: j.item.Origin}, true
		p.since++
	default:
		p.since++
		if !leavesOut(j.err) {
			err = located(j.err, j.item.Origin)
		}
	}
	*j = job[T, U]{done: j.done, mark: j.mark}
	p.free <- j
	return ok, err
}

func (p *parallel[T, U]) AppendMark(dst []byte) ([]byte, error) {
	if p.lost != nil {
		return dst, p.lost
	}
	out := append(dst, '{')
	if p.before > 0 {
		out = append(out, `"before":`...)
		out = append(strconv.AppendInt(out, p.before, 10), ',')
	}
	out = append(out, `"read":`...)
	out = strconv.AppendInt(out, p.since, 10)
	out = appendGiven(append(out, `,"at":`...), p.base)
	return append(out, '}'), nil
}

func (p *parallel[T, U]) Close() error {
	p.cancel()
	p.running.Wait()
	return p.up.Close()
}
