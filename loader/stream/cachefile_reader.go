package stream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// fileCached reads a shard of a FileCache: its file if that is whole, and else the stream below.
type fileCached[T any] struct {
	of      *FileCache[T]
	ctx     context.Context // that of Open, which the stream below is opened with
	shard   int
	n       int64           // items given
	failed  int64           // failures given behind them
	base    place           // one of the stream below, up to the n items
	tried   int64           // items given when another was last looked for
	up      Reader[T]       // the stream below, or
	file    *os.File        // the file, of which
	records recordReader    // reads
	name    string          // of the last origin's file
	builder *fileBuilder[T] // nil if the shard is not kept
	footing                 // of up
	lost    error           // why up has no place where one was due
	broken  error           // why it could not be opened
	ended   bool
}

func (c *FileCache[T]) open(ctx context.Context, _ loader.Pass, shard int, mark []byte) (Reader[T], error) {
	return c.reader(ctx, shard, mark)
}

func (c *FileCache[T]) reader(ctx context.Context, shard int, mark []byte) (*fileCached[T], error) {
	r := &fileCached[T]{of: c, ctx: ctx, shard: shard}
	if mark != nil {
		var m cacheMark
		at, err := m.parse("CacheFile", mark)
		if err != nil {
			return nil, err
		}
		r.n, r.failed, r.base = m.N, m.Failed, place{items: m.From, mark: at}
	}
	index, err := c.look(shard)
	if err != nil {
		return nil, err
	}
	if index != nil && r.n > index.items {
		return nil, &MarkError{Operator: "CacheFile", Err: errOtherData}
	}
	if index != nil && r.openFile(ctx) {
		return r, nil
	}
	return r, r.openStream(ctx)
}

// openStream opens the stream below behind what was given.
func (r *fileCached[T]) openStream(ctx context.Context) error {
	r.tried = r.n
	up, err := r.of.s.open(r.ctx, loader.Pass{}, r.shard, r.base.mark)
	if err != nil {
		return err
	}
	err = orClose(up, func() error {
		if r.base.mark == nil {
			r.lost = noMarks(up)
		}
		if err := passOver(ctx, "CacheFile", up, r.n-r.base.items); err != nil || r.failed == 0 {
			return err
		}
		return passFailed(ctx, "CacheFile", up, r.failed)
	})
	if err != nil {
		return err
	}
	r.up = up
	if r.n == 0 && r.failed == 0 {
		if r.builder = r.of.begin(r.shard); r.builder != nil {
			r.builder.place(nil)
		}
	}
	return nil
}

// openFile opens the file behind what was given. It is false if the file is of no use.
func (r *fileCached[T]) openFile(ctx context.Context) bool {
	f, err := os.Open(r.of.path(r.shard))
	if err == nil {
		r.file = f
		err = r.seek(ctx)
	}
	if err != nil {
		r.damage(err)
	}
	return err == nil
}

// seek goes to what is behind what was given. It asks the open file what it is of, because a
// process of another version may have replaced the one that look has seen.
func (r *fileCached[T]) seek(ctx context.Context) error {
	index, reason, err := indexOf(r.file, r.of.header(r.shard))
	if err != nil {
		return err
	}
	if reason != "" {
		return errors.New(reason)
	}
	at := index.before(r.n)
	if _, err := r.file.Seek(at.offset, io.SeekStart); err != nil {
		return err
	}
	r.records = recordReader{from: bufio.NewReaderSize(r.file, 1<<16)}
	return r.pass(ctx, at.items)
}

// pass passes over what was given behind so many items.
func (r *fileCached[T]) pass(ctx context.Context, items int64) error {
	n, failed := r.n, r.failed
	var item Item[T]
	for r.n, r.failed = items, 0; r.n < n || r.failed < failed; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _, err := r.record(&item, true)
		if err != nil || r.ended {
			r.n, r.failed, r.ended = n, failed, false
			return errors.Join(errOtherData, err)
		}
	}
	return nil
}

// damage makes the file one that is not used any more.
func (r *fileCached[T]) damage(err error) {
	if r.ctx.Err() == nil {
		r.of.fail(r.shard, err)
		s := &r.of.shards[r.shard]
		s.mu.Lock()
		if s.index != nil {
			r.of.bytes.Add(-s.index.size)
			s.index = nil
		}
		s.mu.Unlock()
	}
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// record reads records up to an item, a failure or the end. A value that is passed over is not
// parsed. err is the file's, failure that of a record.
func (r *fileCached[T]) record(item *Item[T], passed bool) (ok bool, failure, err error) {
	for {
		body, err := r.records.next()
		if err != nil {
			return false, nil, err
		}
		kind, body := body[0], body[1:]
		switch kind {
		case recordPlace:
			if len(body) > 0 || r.n == 0 {
				r.base = place{items: r.n, mark: append(r.base.mark[:0:0], body...)}
				r.base.mark = given(r.base.mark)
			}
			continue
		case recordIndex:
			r.ended = true
			return false, nil, nil
		case recordItem, recordFailure:
		default:
			return false, nil, errDamaged
		}
		origin, value, err := parseOrigin(body, r.name)
		if err != nil {
			return false, nil, err
		}
		r.name = origin.File
		if kind == recordFailure {
			r.failed++
			return false, located(errors.New(string(value)), origin), nil
		}
		if !passed {
			item.Origin = origin
			if item.Value, err = r.parse(value); err != nil {
				return false, nil, err
			}
		}
		r.n++
		r.failed = 0
		return true, nil, nil
	}
}

func (r *fileCached[T]) parse(src []byte) (value T, err error) {
	defer recovered(&err)
	return r.of.format.Parse(src)
}

func (r *fileCached[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if r.ended {
		return false, nil
	}
	if r.file != nil {
		ok, failure, err := r.record(item, false)
		if err == nil {
			return ok, failure
		}
		r.damage(err) // and what is behind is read of the stream below
	}
	if r.up == nil && r.broken == nil {
		r.broken = r.openStream(ctx)
	}
	if r.broken != nil {
		return false, r.broken
	}
	if r.n-r.tried >= placeEvery && r.failed == 0 {
		r.keepPlace()
	}
	ok, err = r.up.Next(ctx, item)
	r.passed(ctx, item, ok, err)
	return ok && err == nil, err
}

// passed notes what the stream below has given, and writes it to the file that is built.
func (r *fileCached[T]) passed(ctx context.Context, item *Item[T], ok bool, err error) {
	switch {
	case err == loader.Flush:
	case err != nil && ctx.Err() != nil:
		if r.building() {
			r.builder.leave("its reading was cancelled")
		}
	case err != nil:
		if !r.moved(r.failed > 0, r.up) {
			return
		}
		if r.failed++; r.building() {
			r.builder.failure(err)
		}
	case ok:
		r.of.reads.Add(1)
		r.n++
		if r.failed = 0; r.building() {
			r.builder.item(item)
		}
	default:
		if r.ended = true; r.building() {
			r.builder.finish()
		}
	}
}

// building reports whether what is read is written to a file.
func (r *fileCached[T]) building() bool { return r.builder != nil && r.builder.file != nil }

// keepPlace keeps the place where the stream below stands.
func (r *fileCached[T]) keepPlace() {
	mark, err := r.up.AppendMark(nil)
	r.lost, r.tried = err, r.n
	if err == nil {
		r.base = place{items: r.n, mark: mark}
	}
	if r.building() {
		r.builder.place(mark)
	}
}

func (r *fileCached[T]) AppendMark(dst []byte) ([]byte, error) {
	if r.up != nil {
		if r.lost != nil {
			return dst, r.lost
		}
		if err := r.footing.lost(); err != nil && r.failed > 0 {
			return dst, err
		}
	}
	return appendCacheMark(dst, r.n, r.failed, r.base), nil
}

// Close removes a file that is not whole.
func (r *fileCached[T]) Close() (err error) {
	if r.building() {
		r.builder.leave("it was left behind item " + strconv.FormatInt(r.n, 10))
	}
	if r.file != nil {
		err = r.file.Close()
	}
	if r.up != nil {
		err = errors.Join(err, r.up.Close())
	}
	return err
}
