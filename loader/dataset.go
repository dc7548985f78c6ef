package loader

import "context"

// Dataset gives its samples by number, in any order.
type Dataset interface {
	// Len is the number of samples. It is asked once, by New; a later change has no
	// effect.
	Len() int
	// Fields describes one sample. It is asked once, by New.
	Fields() []Field
	// Read writes sample index to row: every byte of every field. A Read that never
	// asks for a field fails the sample; one that writes a part of a field fails it
	// only in builds with the tag invariants; see Row.Bytes. Read is called by several
	// goroutines at once, and with the same index twice where a batch is padded. The
	// row is borrowed until Read returns. ctx is cancelled when the Run is closed; a
	// Read that may take long should return then. Any error, io.EOF included, is that
	// sample's failure.
	Read(ctx context.Context, index int, row *Row) error
}

// Fingerprinter is a Dataset or an Iterable that can tell its contents from
// others' of the same length and fields. A State saved with one fingerprint is
// refused where another is found.
type Fingerprinter interface {
	// Fingerprint is cheap and the same in every process that sees the same data.
	Fingerprint() uint64
}

// FromFunc makes a Dataset of n samples of a function: read writes sample i to a row,
// under the rules of Dataset.Read.
func FromFunc(n int, fields []Field, read func(ctx context.Context, i int, row *Row) error) Dataset {
	return &function{n: n, fields: cloneFields(fields), read: read}
}

type function struct {
	n      int
	fields []Field
	read   func(context.Context, int, *Row) error
}

func (f *function) Len() int        { return f.n }
func (f *function) Fields() []Field { return f.fields }

func (f *function) missing() error { return required("read", f.read, "a function") }

func (f *function) Read(ctx context.Context, index int, row *Row) error {
	return f.read(ctx, index, row)
}

// FromSlice makes a Dataset of items: encode writes one of them to a row, under
// the rules of Dataset.Read. The dataset borrows items for good.
func FromSlice[T any](items []T, fields []Field, encode func(ctx context.Context, item T, row *Row) error) Dataset {
	return &slice[T]{items: items, fields: cloneFields(fields), encode: encode}
}

type slice[T any] struct {
	items  []T
	fields []Field
	encode func(context.Context, T, *Row) error
}

func (s *slice[T]) Len() int        { return len(s.items) }
func (s *slice[T]) Fields() []Field { return s.fields }

func (s *slice[T]) missing() error { return required("encode", s.encode, "a function") }

func (s *slice[T]) Read(ctx context.Context, index int, row *Row) error {
	return s.encode(ctx, s.items[index], row)
}
