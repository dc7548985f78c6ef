package main

import (
	"fmt"
	"strings"
	"time"
)

// A summary is the line that -json prints.
type summary struct {
	Device     string    `json:"device"`
	Frames     int       `json:"frames"`
	Width      int       `json:"width"`
	Height     int       `json:"height"`
	FrameBytes int       `json:"frame_bytes"`
	Radius     int       `json:"radius"`
	Passes     int       `json:"passes"`
	Workers    int       `json:"workers"`
	Ways       []wayLine `json:"ways"`
	Equal      bool      `json:"equal"`
}

// A wayLine is what was measured of a way. Ratio is how many times faster than the
// synchronous way it is. The busy shares are of Seconds, from 0 to 1; the times a
// frame are the means of the engines' busy time and, where the way's own loop does
// it, of the host's work.
type wayLine struct {
	Name            string  `json:"name"`
	Seconds         float64 `json:"seconds"`
	FramesPerSecond float64 `json:"frames_per_second"`
	Ratio           float64 `json:"ratio"`
	BusyH2D         float64 `json:"busy_h2d"`
	BusyCompute     float64 `json:"busy_compute"`
	BusyD2H         float64 `json:"busy_d2h"`
	FrameH2D        float64 `json:"frame_h2d_seconds"`
	FrameCompute    float64 `json:"frame_compute_seconds"`
	FrameD2H        float64 `json:"frame_d2h_seconds"`
	FramePrepare    float64 `json:"frame_prepare_seconds,omitempty"`
	FrameCheck      float64 `json:"frame_check_seconds"`
}

func newSummary(b *bench, c config) summary {
	return summary{Device: b.dev.String(), Frames: c.frames, Width: c.width, Height: c.height, FrameBytes: b.film.FrameBytes(),
		Radius: b.filter.Radius(), Passes: c.passes, Workers: c.workers}
}

func (s *summary) add(m figures) {
	wall, n := m.wall.Seconds(), float64(s.Frames)
	frame := func(d time.Duration) float64 { return d.Seconds() / n }
	share := func(d time.Duration) float64 { return d.Seconds() / wall }
	w := wayLine{
		Name: m.name, Seconds: wall, FramesPerSecond: n / wall, Ratio: 1,
		BusyH2D: share(m.busy.H2D), BusyCompute: share(m.busy.Kernels), BusyD2H: share(m.busy.D2H),
		FrameH2D: frame(m.busy.H2D), FrameCompute: frame(m.busy.Kernels), FrameD2H: frame(m.busy.D2H),
		FramePrepare: frame(m.host.prepare), FrameCheck: frame(m.host.check),
	}
	if len(s.Ways) > 0 {
		w.Ratio = s.Ways[0].Seconds / wall
	}
	s.Ways = append(s.Ways, w)
}

func (s *summary) heading() string {
	return fmt.Sprintf("%d frames of %d×%d, %.1f MB each way, blurred %d times with radius %d, %d workers, on %s",
		s.Frames, s.Width, s.Height, float64(s.FrameBytes)/1e6, s.Passes, s.Radius, s.Workers, s.Device)
}

func (s *summary) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-12s %11s %9s %7s    %21s    %26s\n", "", "", "", "", "engines busy", "a frame in ms")
	fmt.Fprintf(&b, "%-12s %11s %9s %7s    %5s  %7s  %5s    %5s  %7s  %5s  %5s\n",
		"", "time", "frames/s", "ratio", "H2D", "compute", "D2H", "H2D", "compute", "D2H", "check")
	for _, w := range s.Ways {
		fmt.Fprintf(&b, "%-12s %9.1f ms %9.0f %7.2f    %4.0f%%  %6.0f%%  %4.0f%%    %5.2f  %7.2f  %5.2f  %5.2f\n",
			w.Name, 1e3*w.Seconds, w.FramesPerSecond, w.Ratio, 100*w.BusyH2D, 100*w.BusyCompute, 100*w.BusyD2H,
			1e3*w.FrameH2D, 1e3*w.FrameCompute, 1e3*w.FrameD2H, 1e3*w.FrameCheck)
	}
	if len(s.Ways) > 0 {
		fmt.Fprintf(&b, "making a frame takes the host %.2f ms when it does nothing else\n", 1e3*s.Ways[0].FramePrepare)
	}
	return b.String()
}
