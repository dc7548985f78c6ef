package serve_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

// An ask is a request that says what is to go wrong with it. Its answer is its number,
// squared.
type ask struct {
	number int64
	size   int64
	wrong  wrong
	slow   time.Duration // in Encode
}

type wrong string

const (
	fails  wrong = "fails"
	panics wrong = "panics"
	exits  wrong = "exits"

	inSize, inEncode, inDecode = "size: ", "encode: ", "decode: "
)

// own is an error of one request.
type own struct{ number int64 }

func (e own) Error() string { return fmt.Sprintf("request %d", e.number) }

// goWrong does what w says, where it says it.
func goWrong(w wrong, where wrong, number int64) error {
	switch w {
	case where + fails:
		return own{number}
	case where + panics:
		panic(own{number})
	case where + exits:
		runtime.Goexit()
	}
	return nil
}

// fields are a number, and more bytes of it that show whose row it is.
var fields = []loader.Field{{Name: "x", DType: dtype.Int64}, {Name: "bytes", DType: dtype.Uint8, Shape: []int{5}}}

// squares is the model of asks. Decode finds out what is to go wrong by number, since it has
// no request.
func squares(decode func(number int64) wrong) serve.Model[ask, int64] {
	return serve.Model[ask, int64]{In: fields, Encode: encode, Out: fields, Size: size,
		Decode: func(a serve.Answer) (int64, error) {
			x, err := serve.Value[int64](a, "x")
			if err != nil {
				return 0, err
			}
			bytes, err := serve.Values[uint8](a, "bytes")
			if err != nil {
				return 0, err
			}
			for i, b := range bytes {
				if b != byte(x)+byte(i) {
					return 0, fmt.Errorf("row %d has the bytes %v", x, bytes)
				}
			}
			if decode != nil {
				if err := goWrong(decode(x), inDecode, x); err != nil {
					return 0, err
				}
			}
			return x * x, nil
		},
	}
}

func size(a ask) int64 {
	if err := goWrong(a.wrong, inSize, a.number); err != nil {
		panic(err) // there is no error to return
	}
	return a.size
}

func encode(_ context.Context, a ask, row *loader.Row) error {
	time.Sleep(a.slow)
	if err := goWrong(a.wrong, inEncode, a.number); err != nil {
		return err
	}
	bytes := loader.Column[uint8](row, "bytes")
	for i := range bytes {
		bytes[i] = byte(a.number) + byte(i)
	}
	return loader.Write(row, "x", a.number)
}

// onHost gives the rows back, which takes a while.
func onHost(took time.Duration) serve.HostStep {
	return func(_ context.Context, b prefetch.Batch, out serve.Answers) error {
		time.Sleep(took)
		for _, f := range fields {
			to, ok := out.Lookup(f.Name)
			if !ok {
				return fmt.Errorf("no field %q", f.Name)
			}
			copy(to.Bytes, b.Field(f.Name).Bytes)
		}
		return nil
	}
}

// onDevice gives the rows back, and keeps the stream busy for a while before.
func onDevice(took func(at prefetch.Position) time.Duration) prefetch.Step {
	return func(b prefetch.Batch, out prefetch.Fields) error {
		s := b.Stream()
		if d := took(b.Position()); d > 0 {
			if err := s.Launch(cpu.Busy(d)); err != nil {
				return err
			}
		}
		for _, f := range fields {
			if err := s.CopyD2D(out.Field(f.Name).View, b.Field(f.Name).View); err != nil {
				return err
			}
		}
		return nil
	}
}

func always(d time.Duration) func(prefetch.Position) time.Duration {
	return func(prefetch.Position) time.Duration { return d }
}

// gpu is a modelled device and its compute stream.
func gpu(t testing.TB, o cpu.Options) (*device.Device, *device.Stream) {
	dev, err := cpu.Open(o)
	require.NoError(t, err)
	s, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, dev.Close())
	})
	return dev, s
}

// queues are the ways to make a Queue whose batches take no time.
func queues() map[string]func(t testing.TB, maxBatch int, decode func(int64) wrong, o serve.Options) *serve.Queue[ask, int64] {
	return map[string]func(t testing.TB, maxBatch int, decode func(int64) wrong, o serve.Options) *serve.Queue[ask, int64]{
		"device": func(t testing.TB, maxBatch int, decode func(int64) wrong, o serve.Options) *serve.Queue[ask, int64] {
			_, s := gpu(t, cpu.Options{})
			q, err := serve.New(s, maxBatch, squares(decode), onDevice(always(0)), o)
			require.NoError(t, err)
			return q
		},
		"host": func(t testing.TB, maxBatch int, decode func(int64) wrong, o serve.Options) *serve.Queue[ask, int64] {
			q, err := serve.NewHost(maxBatch, squares(decode), onHost(0), o)
			require.NoError(t, err)
			return q
		},
	}
}

// modelled is a card on which copies take a time of their direction.
func modelled(in, out time.Duration) cpu.Options {
	return cpu.Options{Model: &cpu.Model{CopyTime: func(way cpu.Direction, _ int64) time.Duration {
		switch way {
		case cpu.H2D:
			return in
		case cpu.D2H:
			return out
		}
		return 0
	}}}
}

const tokens = dtype.Int32
