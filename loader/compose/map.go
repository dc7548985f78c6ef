package compose

import (
	"context"
	"errors"

	"github.com/leat-go/leat/loader"
)

// Map has the samples that f makes of those of ds. They have the given fields, which may be
// others than those of ds.
//
// f reads the sample of ds from in, by loader.Value, and writes
// every field of out, under the rules of Dataset.Read. Both are lent until it returns. in
// is memory of its own: f may write to it. The random numbers of in and of out depend on the
// same seed, epoch and position, and are independent of each other; in's go on behind those
// that ds has drawn. f is called by several goroutines at once; an error, a panic
// or a field that it leaves out fails the sample.
//
// The fingerprint covers the fields, and cannot cover f.
func Map(ds loader.Dataset, fields []loader.Field, f func(ctx context.Context, in, out *loader.Row) error) (loader.Dataset, error) {
	p, err := newPart("Map: ds", ds)
	layout, invalid := loader.NewLayout(fields, 1)
	if f == nil {
		invalid = errors.Join(invalid, mistake("Map: f", "nil", "a function"))
	}
	if err := errors.Join(err, invalid); err != nil {
		return nil, err
	}
	m := &mapped{single: single{[1]part{p}}, f: f, scratches: scratches{fields: p.fields}}
	for _, f := range layout.Written() {
		m.fields = append(m.fields, f.Field)
	}
	return m, nil
}

type mapped struct {
	single
	fields    []loader.Field
	f         func(ctx context.Context, in, out *loader.Row) error
	scratches scratches
}

func (m *mapped) Fields() []loader.Field { return m.fields }

func (m *mapped) Fingerprint() uint64 {
	return fingerprint(kindMap, m.part[:], hashString(listed(m.fields)))
}

func (m *mapped) Read(ctx context.Context, index int, row *loader.Row) error {
	return m.read(ctx, uint64(row.Epoch()), index, row)
}

func (m *mapped) read(ctx context.Context, pass uint64, index int, row *loader.Row) error {
	s, err := m.scratches.get()
	if err != nil {
		return err
	}
	in, err := m.part[0].readTo(ctx, s, pass, index, row)
	if err == nil {
		err = m.f(ctx, in, row)
	}
	m.scratches.put(s)
	return err
}
