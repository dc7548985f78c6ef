package cpu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// BenchmarkBatch is the protocol's calls for one batch through a ring of slots:
// two waits, a copy, a kernel and three records. The bytes are few, so that the
// time is the device's own.
func BenchmarkBatch(b *testing.B) {
	for _, depth := range []int{1, 3} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			dev, err := cpu.Open(cpu.Options{})
			require.NoError(b, err)
			up, err := dev.NewStream(device.StreamOptions{})
			require.NoError(b, err)
			compute, err := dev.NewStream(device.StreamOptions{})
			require.NoError(b, err)
			buf, err := dev.Alloc(64)
			require.NoError(b, err)
			host, err := dev.AllocHost(64, device.HostOptions{})
			require.NoError(b, err)
			var ready, consumed, copied []*device.Event
			for range depth {
				for _, list := range []*[]*device.Event{&ready, &consumed, &copied} {
					e, err := dev.NewEvent(device.EventOptions{})
					require.NoError(b, err)
					*list = append(*list, e)
				}
			}
			kernel := cpu.Busy(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % depth {
				err := copied[i].Synchronize(background)
				for _, call := range []error{
					up.Wait(consumed[i]), up.CopyH2D(buf.View(), host.Bytes()), up.Record(copied[i]), up.Record(ready[i]),
					compute.Wait(ready[i]), compute.Launch(kernel), compute.Record(consumed[i]),
				} {
					if err == nil {
						err = call
					}
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, dev.Synchronize(background))
		})
	}
}

// BenchmarkCopy is the rate of copies against the same bytes by Go's copy.
func BenchmarkCopy(b *testing.B) {
	for _, bytes := range []int64{64 << 10, 1 << 20, 16 << 20} {
		dev, err := cpu.Open(cpu.Options{})
		require.NoError(b, err)
		s, err := dev.NewStream(device.StreamOptions{})
		require.NoError(b, err)
		buf, err := dev.Alloc(bytes)
		require.NoError(b, err)
		host, err := dev.AllocHost(bytes, device.HostOptions{})
		require.NoError(b, err)
		b.Run(fmt.Sprintf("by=device/bytes=%d", bytes), func(b *testing.B) {
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.CopyH2D(buf.View(), host.Bytes()); err != nil {
					b.Fatal(err)
				}
				if err := s.Synchronize(background); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("by=copy/bytes=%d", bytes), func(b *testing.B) {
			b.SetBytes(bytes)
			out := make([]byte, bytes)
			for b.Loop() {
				copy(out, host.Bytes())
			}
		})
	}
}
