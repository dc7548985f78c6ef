package probe_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/cmd/leat/internal/probe"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/kernels/kerneltest"
)

const ms = time.Millisecond

// small is a probe of a card with little to move.
var small = probe.Options{Compute: 3 * ms, Bytes: 1e6, MaxBytes: 1 << 20, RunBytes: 1 << 20, PinBytes: 64 << 10, Sides: []int{32, 64}, Runs: 2}

// card is a model whose copies of a megabyte take 2 ms.
func card() *cpu.Model {
	m := cpu.PCIe4Consumer()
	m.SharedCopyEngines = false
	m.H2D = cpu.Link{BytesPerSecond: 1e9, Latency: ms}
	m.D2H = cpu.Link{BytesPerSecond: 2e9}
	m.Pageable = cpu.Link{BytesPerSecond: 0.5e9}
	m.KernelLatency = 0
	m.KernelTime = func(l *device.Launch) time.Duration {
		switch l.Kernel.Name {
		case "spin":
			return time.Duration(l.Args.Arg(0).Value)
		case "product":
			return 5 * ms
		}
		return 0
	}
	return &m
}

func open(t *testing.T, o cpu.Options) (*device.Device, *devicetest.Tap) {
	drv, err := cpu.New(o)
	require.NoError(t, err)
	tap := devicetest.NewTap(drv)
	return device.New(tap), tap
}

func TestAModelledCardIsFoundAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := card()
		dev, _ := open(t, cpu.Options{Model: m})
		date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		r, err := probe.Run(t.Context(), dev, date, small)
		require.NoError(t, err)
		require.NoError(t, dev.Close(), "something was left on the device")

		require.Empty(t, r.Skipped)
		require.Len(t, r.Copies, 3*4, "64 KiB, 256 KiB and 1 MiB, two ways, two memories")
		for _, c := range r.Copies {
			link := map[string]cpu.Link{"H2D": m.H2D, "D2H": m.D2H}[c.Way]
			if c.Memory == "pageable" {
				link = m.Pageable
			}
			require.InEpsilon(t, float64(units.RateOf(c.Bytes, link.Time(int64(c.Bytes)))), float64(c.Rate), 1e-6, "%+v", c)
		}
		require.InEpsilon(t, 1, r.Overlap.Hidden, 1e-9)
		require.Equal(t, r.Overlap.Copy, r.Overlap.Kernel)
		require.Equal(t, r.Overlap.Copy, r.Overlap.Together)
		for _, p := range r.Products {
			require.Equal(t, 10*ms, p.One, "the card has one engine for compute")
			require.Equal(t, 10*ms, p.Two)
		}
		require.Equal(t, 2*ms, r.Pipeline.Copy)
		require.Equal(t, []probe.Depth{{1, 5 * ms}, {2, 3 * ms}, {3, 3 * ms}, {4, 3 * ms}}, r.Pipeline.Depths)
		require.Equal(t, 2, r.Advice.Depth)
		require.Equal(t, 1, r.Advice.Streams)
		require.True(t, r.Advice.WorthIt)
		require.InEpsilon(t, 5.0/3, r.Advice.SpeedUp, 1e-9)
		require.EqualValues(t, 1<<20, r.Advice.Bytes)

		text := r.String()
		for _, say := range []string{"modelled", "Use Depth 2", "Hiding the copy of 1 MB (2ms) behind 3ms of compute is worth it", "One stream for compute is enough"} {
			require.Contains(t, text, say)
		}
		var back probe.Report
		document, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(document, &back))
		require.Equal(t, r, back)
	})
}

// What a device has several of, what it does at once and what it does first show in the
// figures, and the advice follows from them.
func TestStreamsPrioritiesGraphsAndAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := card()
		m.ComputeEngines, m.CopyEngines = 4, 2
		m.KernelLatency, m.GraphLatency, m.NodeLatency = 5*time.Microsecond, 20*time.Microsecond, time.Microsecond
		m.Peer = cpu.Link{BytesPerSecond: 4e9}
		kernelTime := m.KernelTime
		m.KernelTime = func(l *device.Launch) time.Duration {
			if l.Kernel.Name == "gather_i32" {
				return time.Duration(float64(l.Args.Arg(0).Bytes)) // 1e9 bytes a second
			}
			return kernelTime(l)
		}
		dev, _ := open(t, cpu.Options{Model: m})
		peer, _ := open(t, cpu.Options{Model: card(), Index: 1})
		o := small
		o.Peer = peer
		r, err := probe.Run(t.Context(), dev, time.Now(), o)
		require.NoError(t, err)
		require.NoError(t, dev.Close(), "something was left on the device")
		require.NoError(t, peer.Close(), "or on the other")
		require.Empty(t, r.Skipped)

		const product = 5*ms + 5*time.Microsecond
		require.Len(t, r.Streams, 2)
		require.Equal(t, []probe.StreamsTime{{1, 8 * product}, {2, 4 * product}, {4, 2 * product}, {8, 2 * product}}, r.Streams[0].Times)
		one := r.Streams[1].Times[0].Time
		require.Equal(t, []probe.StreamsTime{{1, one}, {2, one / 2}, {4, one / 2}, {8, one / 2}}, r.Streams[1].Times)
		require.Equal(t, 4, r.Advice.Streams)
		require.Equal(t, 2, r.Advice.CopyStreams)

		require.GreaterOrEqual(t, r.Priority.First, product)
		require.LessOrEqual(t, r.Priority.First, 2*product, "it is next when an engine is free")
		require.Greater(t, r.Priority.Equal, r.Priority.First)
		require.Equal(t, probe.Graph{Kernels: 64, Launched: 64 * 5 * time.Microsecond, Replayed: 84 * time.Microsecond}, r.Graph)
		require.EqualValues(t, 4<<10, r.Mapped.RowBytes)
		require.InEpsilon(t, 1e9, float64(r.Mapped.Rate), 0.02)
		require.Equal(t, "cpu:1", r.Peer.Name)
		require.InEpsilon(t, 4e9, float64(r.Peer.Rate), 1e-3)
		text := r.String()
		for _, say := range []string{"the smallest go on gaining up to 4 streams (4.00×)", "2 streams for copies pay", "Priorities help what others wait for",
			"worth capturing as graphs", "84µs replayed as a graph", "A kernel reads rows of 4 KiB in pinned memory", "Copies to cpu:1 go over"} {
			require.Contains(t, strings.Join(strings.Fields(text), " "), say)
		}
	})
}

func TestWhatArrivesChangedIsAnError(t *testing.T) {
	for name, rule := range map[string]devicetest.Rule{
		"copies in are lost":             {Op: devicetest.CopyH2D, Stream: "copy", Swallow: true},
		"copies out are lost":            {Op: devicetest.CopyD2H, Stream: "copy", Swallow: true},
		"the first of both ways is lost": {Op: devicetest.CopyH2D, Stream: "left", Nth: 1, Swallow: true},
		"a kernel's reads are lost":      {Op: devicetest.Launch, Kernel: "gather_i32", Swallow: true},
		"copies on streams are lost":     {Op: devicetest.CopyH2D, Stream: "fan 1", Swallow: true},
		"products are lost":              {Op: devicetest.Launch, Kernel: "product", Swallow: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dev, tap := open(t, cpu.Options{Model: card(), Adversary: &cpu.Adversary{Poison: true}})
				tap.Arm(rule)
				o := small
				o.Runs = 1
				_, err := probe.Run(t.Context(), dev, time.Now(), o)
				require.Error(t, err)
				require.NoError(t, dev.Close())
			})
		})
	}
}

func TestWhatDoesNotFitIsSkippedAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, _ := open(t, cpu.Options{Model: card(), MemoryBytes: 1 << 20, PinnedBytes: 64 << 20})
		r, err := probe.Run(t.Context(), dev, time.Now(), small)
		require.NoError(t, err)
		require.NoError(t, dev.Close())
		require.Empty(t, r.Copies)
		require.NotEmpty(t, r.Calls)
		require.NotEmpty(t, r.Skipped)
		require.Contains(t, r.String(), "Skipped")
	})
}

// On a slow machine the probe ends in time all the same, measures something of each
// part, and says what it left out.
func TestAProbeEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := time.Duration(0) // the time that it takes to measure all
		for _, share := range []time.Duration{1, 2, 3, 100} {
			dev, _ := open(t, cpu.Options{Model: card()})
			o := small
			o.Time = whole / share
			start := time.Now()
			r, err := probe.Run(t.Context(), dev, start, o)
			require.NoError(t, err)
			require.NoError(t, dev.Close())
			took := time.Since(start)
			if whole == 0 {
				whole = took
				require.Empty(t, r.Skipped)
				continue
			}
			// What is begun is ended, and the least that a part measures takes its time.
			require.LessOrEqual(t, took, max(o.Time+o.Time/4, whole/2), "%v", r.Skipped)
			require.Contains(t, r.String(), "there was no time left of "+units.Time(o.Time))
			require.NotEmpty(t, r.Copies)
			require.NotEmpty(t, r.Calls)
			require.NotEmpty(t, r.Products)
			require.NotEmpty(t, r.Pipeline.Depths)
			require.Positive(t, r.Both.Rate)
			require.Positive(t, r.Overlap.Copy)
			require.Positive(t, r.Pinning.Bytes)
		}
	})
}

func TestMistakesInOptionsAreReportedAtOnce(t *testing.T) {
	_, err := probe.Run(t.Context(), nil, time.Now(), probe.Options{Compute: -1, Bytes: -2, MaxBytes: -3, RunBytes: -6, PinBytes: -4, Sides: []int{16, 17}, Runs: -5, Time: -7})
	for _, field := range []string{"Compute", "Bytes", "MaxBytes", "RunBytes", "PinBytes", "Sides[1]", "Runs", "Time"} {
		require.ErrorContains(t, err, field)
	}
}

func TestPTXIsMadeFromTheSource(t *testing.T) { kerneltest.Rebuilt(t, "./generate.sh", probe.PTX) }

func TestPTXFusesNothing(t *testing.T) { kerneltest.Unfused(t, probe.PTX) }
