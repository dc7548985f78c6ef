package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/observe/timeline"
	"github.com/leat-go/leat/observe/ui"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// The figures are those of the pipeline: a batch of 16 samples of 1 ms on one worker takes
// 16 ms, and the loop 4.
func TestTheFiguresAreThePipelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, recorded := range []bool{true, false} {
			o := prefetch.Options{}
			if recorded {
				o.Recorder = observe.NewRecorder(observe.Options{})
			}
			pf := onHost(t, data{time.Millisecond}, loader.Options{Workers: 1, Shard: loader.Shard{Index: 1, Count: 2}, Shuffle: true, Seed: 5, Last: loader.Drop}, o)
			page := ui.New(ui.Options{})
			page.Show("train", pf)
			p := page.Report().Pipelines[0]
			require.Equal(t, "No batch", p.Explanation.Sentences[0][:8])
			require.Zero(t, p.Total)
			n := 0
			for _, err := range pf.Batches(t.Context()) {
				require.NoError(t, err)
				time.Sleep(4 * time.Millisecond)
				if n++; n == 100 {
					break
				}
			}
			p = page.Report().Pipelines[0]
			require.Equal(t, recorded, p.Recorded)
			require.Equal(t, [2]int{1, 2}, [2]int{p.Rank, p.Ranks})
			require.InDelta(t, 1.604, p.Seconds, 0.001)
			require.InDelta(t, 100*16/1.604, p.Pace.SamplesPerSecond, 1)
			require.InDelta(t, 0.25, p.Pace.Readiness, 0.01)
			require.Equal(t, "loop", p.Account.Of)
			require.EqualValues(t, 100, p.Account.Steps)
			var sum, producers float64
			for _, part := range p.Account.Parts {
				sum += part.Seconds
				if part.Cause == string(journal.Producers) {
					producers = part.Seconds
				}
			}
			require.InDelta(t, p.Seconds, sum, 1e-6, "the parts are all the time")
			require.InDelta(t, 1.204, producers, 0.001)
			require.Equal(t, "reading", p.Stages[0].Name)
			require.True(t, p.Stages[0].Slow)
			require.InDelta(t, 1, p.Stages[0].Holds, 0.01, "the worker reads all the time")
			require.InDelta(t, 0.25, p.Stages[len(p.Stages)-1].Holds, 0.01, "the loop")
			require.Equal(t, ui.Total{Batches: 100, Samples: 1600, Bytes: 1600 * rowBytes}, p.Total)
			require.EqualValues(t, 3200, p.Place.Position, "of all ranks")
			require.EqualValues(t, 5, p.Place.Seed)
			require.Contains(t, p.Plan, "1 of 2")
			if recorded {
				require.Equal(t, string(observe.SlowProducers), p.Explanation.Bottleneck)
				require.Equal(t, "step", p.Times[0].Of)
				require.InDelta(t, 0.016, p.Times[0].P50, 1e-6)
				require.NotEmpty(t, p.Slowest)
			} else {
				require.Contains(t, p.Explanation.Sentences[0], "75% of the time of 100 steps")
				require.Empty(t, p.Times)
			}
			require.NoError(t, pf.Close())
			require.Equal(t, p.Total, page.Report().Pipelines[0].Total, "a closed pipeline keeps its figures")
		}
	})
}

// What is shown is of the last seconds, whoever looks and however often; after a time in which
// nobody has looked the first figures are of all of it.
func TestFiguresAreOfTheLastSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := ui.Handler(onHost(t, data{}, loader.Options{Workers: 1}, prefetch.Options{}))
		seconds := func() float64 { return page.Report().Pipelines[0].Seconds }
		for range 30 {
			for range 10 { // lookers
				seconds()
			}
			time.Sleep(time.Second)
		}
		require.InDelta(t, 10, seconds(), 1)
		time.Sleep(time.Hour)
		require.InDelta(t, 3600, seconds(), 15)
		time.Sleep(time.Second)
		require.InDelta(t, 1, seconds(), 0.01)
		time.Sleep(3 * time.Second)
		require.InDelta(t, 4, seconds(), 0.01)
	})
}

func TestDecisionsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pf := onHost(t, data{5 * time.Millisecond}, loader.Options{}, prefetch.Options{})
		page := ui.Handler(pf)
		take(t, pf, 4000)
		p := page.Report().Pipelines[0]
		require.NotEmpty(t, p.Decisions, "the number of workers is found by trying")
		for _, d := range p.Decisions {
			require.Equal(t, "workers", d.What)
			require.NotEmpty(t, d.Reason)
			require.False(t, d.At.IsZero())
		}
	})
}

func TestPipelinesComeAndGo(t *testing.T) {
	page := ui.New(ui.Options{})
	names := func() (names []string) {
		for _, p := range page.Report().Pipelines {
			names = append(names, p.Name)
		}
		return names
	}
	require.Empty(t, names())
	a := onHost(t, data{}, loader.Options{}, prefetch.Options{})
	b := onHost(t, data{}, loader.Options{}, prefetch.Options{})
	page.Show("a", a)
	page.Show("b", a)
	page.Show("a", b)
	require.Equal(t, []string{"a", "b"}, names())
	take(t, b, 2)
	require.EqualValues(t, 2, page.Report().Pipelines[0].Total.Batches, "it is another one now")
	page.Hide("a")
	page.Hide("nosuch")
	require.Equal(t, []string{"b"}, names())
	require.Len(t, ui.Handler(a, b).Report().Pipelines, 2)
}

func TestAPageIsAVariable(t *testing.T) {
	pf := onHost(t, data{}, loader.Options{}, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	take(t, pf, 3)
	var v expvar.Var = ui.Handler(pf)
	var r ui.Report
	require.NoError(t, json.Unmarshal([]byte(v.String()), &r))
	require.Equal(t, ui.Format, r.Format)
	require.EqualValues(t, 48, r.Pipelines[0].Total.Samples)
	require.False(t, strings.Contains(v.String(), "null"), "lists are empty, not missing")
}

// Looks, pipelines that come and go, and training go on side by side.
func TestLooksDisturbNobody(t *testing.T) {
	pf := onDevice(t, data{}, loader.Options{}, observe.NewRecorder(observe.Options{}))
	page := ui.Handler(pf)
	train(t, pf, time.Millisecond)
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for range 5 {
				for _, path := range []string{"report.json", "timeline.svg?pipeline=pipeline+1", "timeline.json?pipeline=pipeline+1"} {
					r, _ := get(t, page, path)
					if r.StatusCode != 200 {
						t.Error(path, r.Status)
					}
				}
				page.Show("other", pf)
				page.Hide("other")
			}
		})
	}
	lookers.Wait()
}

func TestTheTimelineIsTheRecorders(t *testing.T) {
	pf := onHost(t, data{}, loader.Options{}, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	take(t, pf, 5)
	r, text := get(t, ui.Handler(pf), "timeline.json?pipeline=pipeline+1")
	require.Equal(t, "application/json", r.Header.Get("Content-Type"))
	tl, err := timeline.Read(strings.NewReader(text))
	require.NoError(t, err)
	require.NotEmpty(t, tl.Group(timeline.Loop))
	r, text = get(t, ui.Handler(pf), "timeline.svg?pipeline=pipeline+1")
	require.Equal(t, "image/svg+xml", r.Header.Get("Content-Type"))
	require.Contains(t, text, "host slot ") // whichever they were
}

const secret = "patient-4711"

// telling is data that tells of its contents wherever it can.
type telling struct{ data }

func (telling) Fingerprint() (uint64, error) { return 4, nil }

func (telling) Read(_ context.Context, index int, row *loader.Row) error {
	if index%7 == 3 {
		return errors.New("row is malformed: " + secret)
	}
	copy(row.Bytes("x"), secret)
	return nil
}

// told is a stream whose marks, and whose samples that are left out, tell of contents.
type told struct{ at int }

func (*told) Fields() []loader.Field { return data{}.Fields() }

func (*told) Shards() int { return 1 }

func (*told) Open(context.Context, loader.Pass, int, []byte) (loader.ShardReader, error) {
	return &told{}, nil
}

func (s *told) Next(context.Context) (loader.Encoder, bool, error) {
	s.at++
	return tells(s.at), true, nil
}

type tells int

func (at tells) Encode(_ context.Context, row *loader.Row) error {
	if at%7 == 3 {
		return fmt.Errorf("%w: %s is too young", loader.Skip, secret)
	}
	copy(row.Bytes("x"), secret)
	return nil
}

func (*told) AppendMark(dst []byte) ([]byte, error) { return append(dst, `"`+secret+`"`...), nil }

func (*told) Close() error { return nil }

// A page tells nothing of what is in the data: not rows, not errors of reading them, not a
// State's marks.
func TestNothingOfTheContentsIsTold(t *testing.T) {
	random := onHost(t, telling{}, loader.Options{OnError: loader.Substitute}, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	take(t, random, 20)
	require.Positive(t, random.Stats().Loader.Substituted)
	ld, err := loader.NewStream(&told{}, 16, loader.Options{Skips: true})
	require.NoError(t, err)
	stream, err := prefetch.NewHost(ld, prefetch.Options{Recorder: observe.NewRecorder(observe.Options{})})
	require.NoError(t, err)
	defer func() { require.NoError(t, stream.Close()) }()
	take(t, stream, 300) // marks are taken now and then
	require.Contains(t, fmt.Sprint(stream.Stats().Loader.FirstSkipped), secret)
	text, err := json.Marshal(stream.State())
	require.NoError(t, err)
	require.Contains(t, string(text), secret)

	page := ui.New(ui.Options{})
	page.Show("train", random)
	page.Show("stream", stream)
	for _, name := range []string{"train", "stream"} {
		for _, path := range []string{"", "report.json", "timeline.svg?pipeline=" + name, "timeline.json?pipeline=" + name} {
			r, text := get(t, page, path)
			require.Equal(t, 200, r.StatusCode, path)
			require.NotContains(t, text, secret, path)
			require.NotContains(t, text, "malformed", path)
		}
	}
}

// With a device its own account is the one that is shown: a step of 5 ms keeps it at work,
// behind which copies of 1 ms are hidden, although the loop submits all at once and waits.
func TestTheDevicesFiguresAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pf := onDevice(t, data{}, loader.Options{Workers: 1}, observe.NewRecorder(observe.Options{}))
		page := ui.Handler(pf)
		n := 0
		for b, err := range pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, b.Stream().Launch(cpu.Busy(5*time.Millisecond)))
			if n++; n == 200 {
				break
			}
		}
		p := page.Report().Pipelines[0]
		require.Equal(t, "cpu", p.Device)
		require.Equal(t, "device", p.Account.Of)
		require.InDelta(t, 1, *p.Pace.Utilization, 0.01)
		require.InDelta(t, 1, p.Pace.Readiness, 0.01)
		require.InDelta(t, 1, *p.Pace.Overlap, 0.02)
		require.Equal(t, string(observe.DeviceBound), p.Explanation.Bottleneck)
		names, holds := []string{}, map[string]float64{}
		for _, s := range p.Stages {
			require.False(t, s.Slow, s.Name)
			names, holds[s.Name] = append(names, s.Name), s.Holds
		}
		require.Equal(t, []string{"reading", "host slots", "copies", "ready", "loop", "device"}, names)
		require.InDelta(t, 0.2, holds["copies"], 0.02, "1 ms of 5, and those that are ahead")
		require.InDelta(t, 1, holds["device"], 0.01)
		require.InDelta(t, 8, holds["host slots"], 1, "all are filled, since the device is the slower side")
		last := p.Times[len(p.Times)-1]
		require.Equal(t, "step on the device", last.Of)
		require.InDelta(t, 0.005, last.P50, 1e-6)
	})
}

// Each device of a group is a pipeline on the page, with a timeline of its own.
func TestTheDevicesOfAGroupAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams []*device.Stream
		for range 2 {
			dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{}})
			require.NoError(t, err)
			s, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			streams = append(streams, s)
		}
		g, err := group.New(streams, newLoader(t, data{}, loader.Options{Workers: 2, Last: loader.Drop}),
			prefetch.Options{Recorder: observe.NewRecorder(observe.Options{}), Timing: true})
		require.NoError(t, err)
		page := ui.New(ui.Options{})
		page.ShowGroup("train", g)
		n := 0
		for step, err := range g.Steps(t.Context()) {
			require.NoError(t, err)
			for i, b := range step.Batches {
				require.NoError(t, b.Stream().Launch(cpu.Busy(time.Duration(5+5*i)*time.Millisecond)))
			}
			if n++; n == 50 {
				break
			}
		}
		r := page.Report()
		require.Len(t, r.Pipelines, 2)
		for i, p := range r.Pipelines {
			require.Equal(t, fmt.Sprintf("train, device %d", i), p.Name)
			require.True(t, p.Recorded)
			require.EqualValues(t, 50, p.Total.Batches)
			require.EqualValues(t, 400, p.Total.Samples, "half of each batch")
			require.EqualValues(t, 800, p.Place.Position, "of the step")
			answer, _ := get(t, page, fmt.Sprintf("timeline.svg?pipeline=train,+device+%d", i))
			require.Equal(t, 200, answer.StatusCode)
		}
		for _, s := range streams {
			require.NoError(t, s.Device().Synchronize(context.Background()))
		}
		require.NoError(t, g.Close())
		for _, s := range streams {
			dev := s.Device()
			require.NoError(t, s.Close())
			require.NoError(t, dev.Close())
		}
	})
}
