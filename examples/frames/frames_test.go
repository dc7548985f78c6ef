package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/examples/frames/film"
	"github.com/leat-go/leat/internal/invariants"
)

const ms = time.Millisecond

// card takes 10 ms for each copy and each kernel. Of a frame that is blurred once,
// upload, compute and download take 10, 30 and 10 ms.
var card = cpu.Model{
	CopyTime:   func(cpu.Direction, int64) time.Duration { return 10 * ms },
	KernelTime: func(*device.Launch) time.Duration { return 10 * ms },
}

// slowUpload is a card on which compute that doesn't wait for an upload comes too
// early.
var slowUpload = cpu.Model{
	CopyTime: func(way cpu.Direction, _ int64) time.Duration {
		return map[cpu.Direction]time.Duration{cpu.H2D: 50 * ms, cpu.D2H: 10 * ms}[way]
	},
	KernelTime: card.KernelTime,
}

func small(frames int) config {
	return config{frames: frames, width: 48, height: 44, passes: 1, workers: 2}
}

// smallFilm is a film of a gradient.
func smallFilm(t *testing.T, c config) *film.Film {
	t.Helper()
	p := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			p.Set(x, y, color.RGBA{uint8(4 * x), uint8(4 * y), uint8(2 * (x + y)), 255})
		}
	}
	f, err := film.New([]image.Image{p}, film.Options{Width: c.width, Height: c.height, Frames: c.frames})
	require.NoError(t, err)
	return f
}

// showOn shows a film on a CPU device behind a tap.
func showOn(t *testing.T, o cpu.Options, c config, rules ...devicetest.Rule) (summary, error) {
	t.Helper()
	d, err := cpu.New(o)
	require.NoError(t, err)
	tap := devicetest.NewTap(d)
	for _, r := range rules {
		tap.Arm(r)
	}
	return show(t.Context(), device.New(tap), smallFilm(t, c), c, &bytes.Buffer{})
}

func TestTimesAreThoseOfTheEngines(t *testing.T) {
	if invariants.Enabled {
		t.Skip("in this build results are poisoned first, which takes the device's time")
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := showOn(t, cpu.Options{Model: &card}, small(10))
		require.NoError(t, err)
		require.True(t, s.Equal)
		for i, want := range []struct {
			name  string
			total time.Duration
		}{
			{"synchronous", 10 * 50 * ms},
			{"one stream", 10 * 50 * ms},
			{"pipelined", 10*30*ms + 20*ms},
		} {
			got := s.Ways[i]
			require.Equal(t, want.name, got.Name)
			require.Equal(t, want.total.Seconds(), got.Seconds, got.Name)
			require.InDelta(t, (500*ms).Seconds()/want.total.Seconds(), got.Ratio, 1e-9)
			require.InDelta(t, (100*ms).Seconds()/want.total.Seconds(), got.BusyH2D, 1e-9)
			require.InDelta(t, (300*ms).Seconds()/want.total.Seconds(), got.BusyCompute, 1e-9)
			require.InDelta(t, (100*ms).Seconds()/want.total.Seconds(), got.BusyD2H, 1e-9)
			require.InDelta(t, (30 * ms).Seconds(), got.FrameCompute, 1e-9)
		}
	})
}

func TestResultsAreEqualOnAnUnkindDevice(t *testing.T) {
	unkind := &cpu.Adversary{Seed: 3, Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Delay: 300 * time.Microsecond}
	s, err := showOn(t, cpu.Options{Adversary: unkind}, small(30))
	require.NoError(t, err)
	require.True(t, s.Equal)
	synctest.Test(t, func(t *testing.T) {
		unkind.Delay = 40 * ms
		s, err := showOn(t, cpu.Options{Model: &card, Adversary: unkind}, small(30))
		require.NoError(t, err)
		require.True(t, s.Equal)
	})
}

// A result that is not the first way's is found, whatever made it so.
func TestAWrongResultIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		rule devicetest.Rule
		want string
	}{
		"download doesn't wait for compute": {devicetest.Rule{Op: devicetest.Wait, Stream: "download", Swallow: true}, "pipelined"},
		"compute doesn't wait for upload":   {devicetest.Rule{Op: devicetest.Wait, Stream: "compute", Swallow: true}, "pipelined"},
		"one download is missing":           {devicetest.Rule{Op: devicetest.CopyD2H, Stream: "download", Nth: 14, Swallow: true}, "pipelined"},
		"no upload on one stream":           {devicetest.Rule{Op: devicetest.CopyH2D, Stream: "compute", Nth: 40, Swallow: true}, "one stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := showOn(t, cpu.Options{Model: &slowUpload, Adversary: &cpu.Adversary{Poison: true}}, small(20), c.rule)
				require.ErrorContains(t, err, "the result of "+c.want+" is not that of synchronous")
				require.False(t, s.Equal)
			})
		})
	}
}

func TestAFaultNamesTheWay(t *testing.T) {
	refused := device.ErrOutOfMemory
	_, err := showOn(t, cpu.Options{}, small(3), devicetest.Rule{Op: devicetest.Alloc, Nth: 12, Err: refused})
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "pipelined: ")
	_, err = showOn(t, cpu.Options{}, small(3), devicetest.Rule{Op: devicetest.NewStream, Nth: 1, Err: refused})
	require.ErrorIs(t, err, refused)
}

// The command as a user starts it, with real photographs.
func TestCommand(t *testing.T) {
	var stdout bytes.Buffer
	out := filepath.Join(t.TempDir(), "out")
	require.NoError(t, run(t.Context(), []string{"-device", "cpu", "-frames", "14", "-width", "96", "-height", "54", "-radius", "3", "-passes", "2", "-json", "-out", out}, &stdout))
	require.Contains(t, stdout.String(), "equal, bit for bit")
	lines := bytes.Split(bytes.TrimSpace(stdout.Bytes()), []byte("\n"))
	var s summary
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &s))
	require.True(t, s.Equal)
	require.Equal(t, []int{14, 96, 54, 3, 2, 3 * 96 * 54}, []int{s.Frames, s.Width, s.Height, s.Radius, s.Passes, s.FrameBytes})
	require.Len(t, s.Ways, 3)
	for _, w := range s.Ways {
		require.Positive(t, w.Ratio)
		require.Positive(t, w.BusyCompute)
	}
	files, err := filepath.Glob(filepath.Join(out, "frame-*.png"))
	require.NoError(t, err)
	require.Len(t, files, 2*written)
	// Blurred and brightened, it is still the picture that went in.
	before, after := decode(t, files[0]), decode(t, files[1])
	require.Equal(t, image.Rect(0, 0, 96, 54), after.Bounds())
	require.InDelta(t, mean(before), mean(after), 30)
	require.Greater(t, mean(after), mean(before))
	require.Greater(t, contrast(before), 1.5*contrast(after))
}

func decode(t *testing.T, name string) *image.RGBA {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	p, err := png.Decode(f)
	require.NoError(t, err)
	return p.(*image.RGBA)
}

func mean(p *image.RGBA) float64 {
	sum := 0.0
	for i, v := range p.Pix {
		if i%4 < 3 {
			sum += float64(v)
		}
	}
	return sum / float64(len(p.Pix)/4*3)
}

// contrast is the mean difference between neighbours in a row.
func contrast(p *image.RGBA) float64 {
	sum := 0.0
	for i := 4; i < len(p.Pix); i++ {
		d := float64(p.Pix[i]) - float64(p.Pix[i-4])
		sum += max(d, -d)
	}
	return sum / float64(len(p.Pix))
}

func TestMistakesInFlagsAreAllReported(t *testing.T) {
	_, err := parse([]string{"-frames", "-1", "-width", "-2", "-height", "-3", "-radius", "-4", "-passes", "0", "-workers", "-5"})
	for _, name := range []string{"-frames", "-width", "-height", "-radius", "-passes", "-workers"} {
		require.ErrorContains(t, err, name+" is")
	}
	_, err = parse([]string{"film.mov"})
	require.ErrorContains(t, err, "film.mov")
	require.ErrorContains(t, run(t.Context(), []string{"-device", "cpu", "-radius", "9"}, &bytes.Buffer{}), "Radius is 9")
	require.ErrorContains(t, run(t.Context(), []string{"-device", "cpu", "-width", "9"}, &bytes.Buffer{}), "Width and Height are 9×360")
}
