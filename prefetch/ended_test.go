package prefetch_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// A device that is closed first leaves nothing to free, and one thing to say.
func TestClosingTheDeviceFirstIsOneSentence(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				data := canary{n: 24, width: 8}
				r := newRig(t, data, adversarial(time.Millisecond), 2, plain, s.options(data))
				for range r.pf.Batches(t.Context()) {
					break
				}
				require.NoError(t, r.dev.Synchronize(t.Context()))
				require.Error(t, r.dev.Close())
				err := r.pf.Close()
				require.ErrorIs(t, err, device.ErrClosed)
				require.EqualError(t, err, "prefetch: Close: cpu was closed first, and what was on it stays there: close a Prefetcher before its device")
				require.NoError(t, r.pf.Close())
			})
		})
	}
}

// A fault is reported in full by whatever finds it first, with the stack of the code
// that failed, and in one line by all that comes after.
func TestAFaultIsReportedOnce(t *testing.T) {
	for _, first := range []string{"range", "close"} {
		for _, s := range shapes {
			t.Run(first+"/"+s.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 24, width: 8}
					r := newRig(t, data, adversarial(time.Millisecond), 2, plain, s.options(data))
					bad := &device.Kernel{Name: "bad", Go: func(*device.Args) { panic("oops") }}
					launch := &device.Launch{Kernel: bad, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
					var errs []error
					for b, err := range r.pf.Batches(t.Context()) {
						if err != nil {
							errs = append(errs, err)
							break
						}
						if b.Position().Batch == 3 {
							require.NoError(t, b.Stream().Launch(launch))
							if first == "close" {
								break
							}
							time.Sleep(time.Second)
						}
					}
					if first == "range" {
						for range 2 {
							for _, err := range r.pf.Batches(t.Context()) {
								errs = append(errs, err)
							}
						}
						require.Len(t, errs, 3)
					} else {
						time.Sleep(time.Second)
					}
					errs = append(errs, r.pf.Close())
					for i, err := range errs {
						require.ErrorIs(t, err, device.ErrFault)
						require.Equal(t, 1, strings.Count(err.Error(), `kernel "bad"`), err.Error())
						require.NotContains(t, err.Error(), "\n")
						if i == 0 {
							require.Contains(t, err.Error(), "ended_test.go")
						}
					}
					require.NoError(t, r.pf.Close())
				})
			})
		}
	}
}
