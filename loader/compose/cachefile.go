package compose

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/whole"
)

// CacheFile keeps the samples of ds in a file, for this run and later ones. The file is
// whole or absent: it is built under another name beside path, and gets its own when all
// samples are in it. They get there as they are read, or by Build, which reads those that
// are missing: without it an epoch that is left early, or whose tail is dropped, leaves the
// file absent. Nothing has to be cleaned up after a process that was killed, and several may
// build at once; the last to finish puts its file in place.
//
// A file that is there is used if it was made with the same version, fields, number of
// samples and fingerprints; else it is built anew, and Stats says why. It is an error if it
// is no cache at all. version must be changed by hand when something changes that no
// fingerprint covers: what a function of a Map does, with all it refers to, or a dataset
// without a Fingerprint. It may be empty only if there is nothing of the kind.
//
// Where the file can't be written, because the disk is full for example, samples are read of
// ds as if there were no cache, and Stats and Build tell the error, a *CacheError. The same
// goes for a sample that is damaged in the file.
//
// Random numbers and epochs are as with CacheMemory. Close it when the loaders that use it
// have ended.
func CacheFile(ds loader.Dataset, path, version string) (*FileCache, error) {
	p, err := newPart("CacheFile: ds", ds)
	if err == nil {
		err = p.steady("CacheFile: ds")
	}
	if path == "" {
		err = errors.Join(err, mistake("CacheFile: path", "empty", "the name of a file"))
	}
	if err == nil && version == "" && !covered(p) {
		err = mistake("CacheFile: version", "empty", "a version, since ds has a function or a dataset that no fingerprint covers")
	}
	if err != nil {
		return nil, err
	}
	codec, err := loader.NewCodec(p.fields)
	if err != nil {
		return nil, err
	}
	c := &FileCache{single: single{[1]part{p}}, scratches: scratches{fields: p.fields}, codec: codec, path: path}
	c.header, err = newHeader(&p, version, codec.Most())
	if err != nil {
		return nil, err
	}
	c.buffers.New = func() any {
		b := make([]byte, 0, c.header.stride())
		return &b
	}
	return c, c.open()
}

// covered reports whether the fingerprint of a part tells all that its samples depend on.
func covered(p part) bool {
	if _, function := p.dataset.(*mapped); function {
		return false // as is a Select, which is in another order in every epoch
	}
	if p.composed == nil {
		_, ok := p.dataset.(loader.Fingerprinter)
		return ok
	}
	for _, ds := range p.composed.Parts() {
		inner := part{dataset: ds}
		inner.composed, _ = ds.(composed)
		if !covered(inner) {
			return false
		}
	}
	return true
}

// FileCache is a Dataset; see CacheFile. Any number of goroutines may use it.
type FileCache struct {
	single
	scratches scratches
	codec     *loader.Codec
	path      string
	header    header
	buffers   sync.Pool // of *[]byte, for a record each
	reads     atomic.Int64
	damaged   atomic.Pointer[CacheError] // the last damage

	taken, held []atomic.Uint64 // bits: who writes a sample takes it first
	count       atomic.Int64    // of those held

	// Reading and writing the file share the lock; what changes which file it is owns it.
	mu        sync.RWMutex
	file      *os.File    // nil if none
	built     *whole.File // the same, if it is not whole
	whole     bool
	finishing bool // whether a goroutine puts the file in place
	closed    bool
	reason    string        // why there was no file to be used
	failed    *CacheError   // why nothing is written any more
	settled   chan struct{} // is closed when the file is whole, or never will be
}

// FileStats is what a FileCache holds.
type FileStats struct {
	CacheStats
	// Whole is set if all samples are in the file, which has its name.
	Whole bool
	// Reason is why a file that was found could not be used, empty if it is used or there
	// was none.
	Reason string
	// Err is why nothing is kept any more, or the last damage that was found; nil if there
	// is nothing of the kind. It is a *CacheError.
	Err error
}

// CacheError is a failure of a cache's file.
type CacheError struct {
	// Path is the file.
	Path string
	// Err is what has failed.
	Err error
}

// Error implements error.
func (e *CacheError) Error() string { return fmt.Sprintf("compose: cache %s: %v", e.Path, e.Err) }

// Unwrap returns Err.
func (e *CacheError) Unwrap() error { return e.Err }

// Stats is what is held now.
func (c *FileCache) Stats() FileStats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := FileStats{Whole: c.whole, Reason: c.reason}
	s.Held, s.Samples, s.Reads = int(c.count.Load()), c.Len(), c.reads.Load()
	s.Bytes = int64(s.Held) * int64(c.codec.Most())
	if damage := c.damaged.Load(); damage != nil {
		s.Err = damage
	}
	if c.failed != nil {
		s.Held, s.Bytes, s.Err = 0, 0, c.failed
	}
	return s
}

// Fields implements loader.Dataset.
func (c *FileCache) Fields() []loader.Field { return c.part[0].fields }

// Fingerprint implements loader.Fingerprinter.
func (c *FileCache) Fingerprint() uint64 { return fingerprint(kindCache, c.part[:]) }

// Read implements loader.Dataset.
func (c *FileCache) Read(ctx context.Context, index int, row *loader.Row) error {
	return c.read(ctx, uint64(row.Epoch()), index, row)
}

func (c *FileCache) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	if uint(index) >= uint(c.Len()) {
		return &IndexError{Index: index, Len: c.Len()}
	}
	if c.holds(index) && c.load(index, row) {
		return nil
	}
	return c.fetch(ctx, pass, index, row, row.CopyFrom)
}

// holds reports whether a sample is in the file.
func (c *FileCache) holds(index int) bool {
	return c.held == nil || c.held[index/64].Load()>>(index%64)&1 != 0
}

// fetch reads a sample of the dataset, lends it, and keeps it if that is wanted.
func (c *FileCache) fetch(ctx context.Context, pass uint64, index int, row *loader.Row, lend func(sample *loader.Row)) error {
	s, err := c.scratches.get()
	if err != nil {
		return err
	}
	c.reads.Add(1)
	sample, err := c.part[0].readTo(ctx, s, pass, index, row)
	if err == nil {
		lend(sample)
		c.keep(index, sample)
	}
	c.scratches.put(s)
	return err
}

var checksums = crc32.MakeTable(crc32.Castagnoli)

// recordHead is the bytes in front of a sample in the file: a checksum of all that follows,
// the size of the sample, and its index.
const recordHead = 16

// encode makes the record of a sample, in a buffer.
func (c *FileCache) encode(index int, sample *loader.Row, buffer []byte) []byte {
	record := c.codec.Append(buffer[:recordHead], sample)
	binary.LittleEndian.PutUint32(record[4:], uint32(len(record)-recordHead))
	binary.LittleEndian.PutUint64(record[8:], uint64(index))
	binary.LittleEndian.PutUint32(record, crc32.Checksum(record[4:], checksums))
	return record
}

// load reads a sample from the file. It is false if that has no good one.
func (c *FileCache) load(index int, row *loader.Row) bool {
	buffer := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buffer)
	record := (*buffer)[:c.header.stride()]
	c.mu.RLock()
	if c.file == nil {
		c.mu.RUnlock()
		return false
	}
	_, err := c.file.ReadAt(record, c.header.offset(index))
	c.mu.RUnlock()
	if err == nil {
		err = c.decode(index, record, row)
	}
	if err != nil {
		c.damaged.Store(&CacheError{Path: c.path, Err: fmt.Errorf("sample %d: %w", index, err)})
	}
	return err == nil
}

var errDamaged = errors.New("its checksum or its index is wrong")

// decode writes the sample of a record to a row.
func (c *FileCache) decode(index int, record []byte, row *loader.Row) error {
	size := binary.LittleEndian.Uint32(record[4:])
	if int64(size) > int64(c.codec.Most()) {
		return errDamaged
	}
	record = record[:recordHead+int(size)]
	if crc32.Checksum(record[4:], checksums) != binary.LittleEndian.Uint32(record) ||
		binary.LittleEndian.Uint64(record[8:]) != uint64(index) {
		return errDamaged
	}
	return c.codec.Load(row, record[recordHead:])
}

// keep writes a sample to the file, if there is one to be built.
func (c *FileCache) keep(index int, sample *loader.Row) {
	bit := uint64(1) << (index % 64)
	if c.taken == nil || c.taken[index/64].Or(bit)&bit != 0 || !c.begin() {
		return
	}
	buffer := c.buffers.Get().(*[]byte)
	err := c.write(c.encode(index, sample, *buffer), c.header.offset(index))
	c.buffers.Put(buffer)
	if err != nil {
		c.fail(err)
		return
	}
	c.held[index/64].Or(bit)
	if c.count.Add(1) == int64(c.Len()) {
		c.finish()
	}
}

func (c *FileCache) write(b []byte, at int64) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.file == nil {
		return nil // it failed or was closed meanwhile
	}
	_, err := writeAt(c.file, b, at)
	return err
}

// writeAt is a variable for tests of full disks.
var writeAt = (*os.File).WriteAt

// Build reads all samples that are not in the file, several at once, and returns when it is
// whole. The error is a *loader.Error for a sample that can't be read, or a *CacheError. It
// may be called while the cache is used; samples that are being read are read twice then.
func (c *FileCache) Build(ctx context.Context) error {
	if c.held == nil {
		return nil
	}
	if err := readThrough(ctx, (*missing)(c), c.Len(), func(int64, *loader.Loader, loader.Filled) {}); err != nil {
		return err
	}
	if c.Len() == 0 && c.begin() {
		c.finish()
	}
	select {
	case <-c.settled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch {
	case c.failed != nil:
		return c.failed
	case !c.whole:
		return &CacheError{Path: c.path, Err: os.ErrClosed}
	}
	return nil
}

// missing is a dataset that reads what the cache lacks, and gives nothing.
type missing FileCache

func (m *missing) Len() int { return (*FileCache)(m).Len() }

func (m *missing) Fields() []loader.Field {
	return []loader.Field{{Name: "nothing", DType: dtype.Uint8, Shape: []int{0}}}
}

func (m *missing) Read(ctx context.Context, index int, row *loader.Row) error {
	c := (*FileCache)(m)
	if c.holds(index) || c.gaveUp() {
		return nil
	}
	return c.fetch(ctx, 0, index, row, func(*loader.Row) {})
}

// maxFile bounds the size of a file, far from the end of its type.
const maxFile = math.MaxInt64 / 4
