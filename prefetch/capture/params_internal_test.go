package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/order"
)

// What the host sends while the device is behind waits for a block, and no longer than
// until the Step ends; each copy brings its own values. Without the event, or the wait for
// it, the host would overwrite what is still to be copied, and package order says so.
func TestBlocksAreUsedAgainWhenTheyAreCopied(t *testing.T) {
	const n, blocks = 9, 2
	for name, rule := range map[string]devicetest.Rule{
		"":           {Op: devicetest.Record, Event: "no such"},
		"the record": {Op: devicetest.Record, Event: "parameters", Swallow: true},
		"the wait":   {Op: devicetest.SynchronizeEvent, Event: "parameters", Swallow: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				drv, err := cpu.New(cpu.Options{Model: &cpu.Model{}})
				require.NoError(t, err)
				checker := order.New(order.Options{ListOnly: true})
				tap := devicetest.NewTap(checker.Wrap(drv))
				armed := tap.Arm(rule)
				dev := device.New(tap)
				s, err := dev.NewStream(device.StreamOptions{})
				require.NoError(t, err)
				memory, err := dev.Alloc(8 * n)
				require.NoError(t, err)
				bs, err := newBlocks(dev, 8, blocks)
				require.NoError(t, err)
				begun := time.Now()
				for i := range n {
					require.NoError(t, s.Launch(cpu.Busy(time.Second)))
					value := binary.LittleEndian.AppendUint64(nil, uint64(i))
					err := bs.send(t.Context(), s, memory.View().Slice(int64(8*i), 8), value)
					if !rule.Swallow {
						require.NoError(t, err)
						require.Equal(t, max(0, i-blocks+1), int(time.Since(begun)/time.Second))
					}
				}
				got := make([]byte, 8*n)
				require.NoError(t, errors.Join(s.CopyD2H(got, memory.View()), s.Synchronize(t.Context())))
				if rule.Swallow {
					require.Positive(t, armed.Fired())
					require.NotEmpty(t, checker.Reports())
					require.NotEqual(t, uint64(0), binary.LittleEndian.Uint64(got), "overwritten before it was copied")
				} else {
					for i := range n {
						require.EqualValues(t, i, binary.LittleEndian.Uint64(got[8*i:]))
					}
					require.Empty(t, checker.Reports())
				}
				tap.Disarm()
				require.NoError(t, errors.Join(bs.close(), memory.Close(), s.Close(), dev.Close()))
			})
		})
	}
}

func TestAWaitForABlockEndsWithTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{}})
		require.NoError(t, err)
		s, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		memory, err := dev.Alloc(8)
		require.NoError(t, err)
		bs, err := newBlocks(dev, 8, 1)
		require.NoError(t, err)
		require.NoError(t, s.Launch(cpu.Busy(time.Minute)))
		ctx, end := context.WithCancelCause(t.Context())
		require.NoError(t, bs.send(ctx, s, memory.View(), make([]byte, 8)))
		time.AfterFunc(time.Second, func() { end(ErrClosed) })
		begun := time.Now()
		require.ErrorIs(t, bs.send(ctx, s, memory.View(), make([]byte, 8)), ErrClosed)
		require.Equal(t, time.Second, time.Since(begun))
		require.NoError(t, s.Synchronize(t.Context()))
		require.NoError(t, errors.Join(bs.close(), memory.Close(), s.Close(), dev.Close()))
	})
}
