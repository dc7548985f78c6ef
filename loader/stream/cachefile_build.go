package stream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/whole"
)

// fileBuilder writes the file of a shard, as a reader of the stream below goes through it.
type fileBuilder[T any] struct {
	of     *FileCache[T]
	shard  int
	file   *whole.File
	out    *bufio.Writer
	index  fileIndex
	buffer []byte
}

// begin makes a builder of a shard's file, unless another reader has one. It is nil if there is
// to be none.
func (c *FileCache[T]) begin(shard int) *fileBuilder[T] {
	if !c.claim(shard) {
		return nil
	}
	b := &fileBuilder[T]{of: c, shard: shard}
	f, err := whole.Create(c.path(shard))
	if err != nil {
		c.fail(shard, err)
		b.settle(nil)
		return nil
	}
	b.file, b.out = f, bufio.NewWriterSize(fileWriter{f}, 1<<16)
	b.write(c.header(shard).append(nil))
	return b
}

// claim makes the caller the one that builds a shard's file, until settle. It is false if there
// is a file, or another one builds it.
func (c *FileCache[T]) claim(shard int) bool {
	s := &c.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.building {
		c.note(shard, "another reader builds the file")
	}
	if s.building || s.index != nil {
		return false
	}
	s.building = true
	return true
}

// fileWriter is a file as a writer. Tests of full disks change what it does.
type fileWriter struct{ file *whole.File }

var writeFile = (*whole.File).Write

func (w fileWriter) Write(p []byte) (int, error) { return writeFile(w.file, p) }

// write appends bytes to the file. A builder whose file is gone does nothing.
func (b *fileBuilder[T]) write(p []byte) {
	if b.file == nil {
		return
	}
	if !b.of.reserve(int64(len(p))) {
		b.leave("MaxBytes is reached")
		return
	}
	b.index.size += int64(len(p))
	if _, err := b.out.Write(p); err != nil {
		b.fail(err)
	}
}

// record begins a record of a kind in the buffer.
func (b *fileBuilder[T]) record(kind byte) []byte {
	var head [fileHead]byte
	return append(append(b.buffer[:0], head[:]...), kind)
}

// seal writes the record that record began.
func (b *fileBuilder[T]) seal(body []byte) {
	b.buffer = body
	if len(body) > mostRecord {
		b.leave(fmt.Sprintf("a value takes %d bytes", len(body)))
		return
	}
	b.write(sealed(body, 0))
}

// place writes a place behind the items so far; mark is nil if it has none.
func (b *fileBuilder[T]) place(mark []byte) {
	b.index.places = append(b.index.places, filePlace{b.index.items, b.index.size})
	b.seal(append(b.record(recordPlace), mark...))
}

// item writes an item. A value that can't be written leaves the file absent.
func (b *fileBuilder[T]) item(item *Item[T]) {
	body, err := b.encode(appendOrigin(b.record(recordItem), item.Origin), item.Value)
	if err != nil {
		b.fail(located(err, item.Origin))
		return
	}
	b.index.items++
	b.seal(body)
}

func (b *fileBuilder[T]) encode(dst []byte, value T) (_ []byte, err error) {
	defer recovered(&err)
	return b.of.format.Append(dst, value)
}

// failure writes the failure of a record.
func (b *fileBuilder[T]) failure(err error) {
	if temporary(err) {
		b.leave("a record failed with a temporary error: " + err.Error())
		return
	}
	text := err.Error()
	var located loader.Located
	var from loader.Origin
	if errors.As(err, &located) {
		from = located.Origin()
		var own *Error
		if errors.As(err, &own) && own == err {
			text = own.Err.Error()
		}
	}
	b.seal(append(appendOrigin(b.record(recordFailure), from), text...))
}

// finish puts the file in place: the shard has ended.
func (b *fileBuilder[T]) finish() {
	at := b.index.size
	body := binary.AppendUvarint(b.record(recordIndex), uint64(b.index.items))
	for _, p := range b.index.places {
		body = binary.AppendUvarint(binary.AppendUvarint(body, uint64(p.items)), uint64(p.offset))
	}
	b.seal(body)
	tail := binary.LittleEndian.AppendUint64(nil, uint64(at))
	b.write(binary.LittleEndian.AppendUint64(tail, uint64(b.index.size+fileTail)))
	if b.file == nil {
		return
	}
	if err := b.out.Flush(); err != nil {
		b.fail(err)
		return
	}
	err := b.file.Place()
	b.file = nil
	if err != nil {
		b.of.bytes.Add(-b.index.size)
		b.of.fail(b.shard, err)
		b.settle(nil)
		return
	}
	b.settle(&b.index)
}

// fail removes the file because of an error.
func (b *fileBuilder[T]) fail(err error) {
	b.discard()
	b.of.fail(b.shard, err)
}

// leave removes the file for a reason that is no failure.
func (b *fileBuilder[T]) leave(reason string) {
	b.discard()
	b.of.note(b.shard, reason)
}

func (b *fileBuilder[T]) discard() {
	if b.file == nil {
		return
	}
	_ = b.file.Discard() // what is left of it is in nobody's way
	b.file = nil
	b.of.bytes.Add(-b.index.size)
	b.settle(nil)
}

// settle says what has become of the file.
func (b *fileBuilder[T]) settle(index *fileIndex) {
	s := &b.of.shards[b.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.building, s.index = false, index
}
