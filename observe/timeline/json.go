package timeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// A document is Chrome's trace event format, of which this is what a Timeline needs: complete
// events ("X"), and the names and order of threads ("M").
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
type document struct {
	Events []event `json:"traceEvents"`
	Unit   string  `json:"displayTimeUnit"`
	Other  other   `json:"otherData"`
}

type other struct {
	Title  string   `json:"title"`
	Notes  []string `json:"notes,omitempty"`
	Length float64  `json:"microseconds"`
	Format string   `json:"format"`
}

const format = "leat timeline 1"

type event struct {
	Name  string  `json:"name"`
	Cat   string  `json:"cat,omitempty"`
	Phase string  `json:"ph"`
	Time  float64 `json:"ts"` // microseconds
	Took  float64 `json:"dur,omitempty"`
	PID   int     `json:"pid"`
	TID   int     `json:"tid"`
	Args  args    `json:"args"`
}

type args struct {
	Name    string `json:"name,omitempty"`       // of a thread
	Sort    *int   `json:"sort_index,omitempty"` // of it
	Group   string `json:"group,omitempty"`
	Number  *int   `json:"number,omitempty"`
	Epoch   *int   `json:"epoch,omitempty"`
	Batch   *int   `json:"batch,omitempty"`
	Batches int    `json:"batches,omitempty"`
	Sample  *int   `json:"sample,omitempty"`
	Samples int    `json:"samples,omitempty"`
	Why     string `json:"why,omitempty"`
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func nanos(us float64) time.Duration { return time.Duration(math.Round(us * 1e3)) }

// WriteJSON writes it for Perfetto, Chrome and Read.
func (t *Timeline) WriteJSON(w io.Writer) error {
	b := bufio.NewWriter(w)
	head, err := json.Marshal(other{t.Title, t.Notes, micros(t.Length), format})
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[\n", head)
	e := json.NewEncoder(b)
	put := func(first bool, of event) {
		if !first {
			b.WriteByte(',')
		}
		err = errors.Join(err, e.Encode(of))
	}
	put(true, event{Name: "process_name", Phase: "M", PID: 1, Args: args{Name: t.Title}})
	for i := range t.Lanes {
		l := &t.Lanes[i]
		tid := i + 1
		put(false, event{Name: "thread_name", Phase: "M", PID: 1, TID: tid, Args: args{Name: l.Name(), Group: l.Group, Number: &l.Number}})
		put(false, event{Name: "thread_sort_index", Phase: "M", PID: 1, TID: tid, Args: args{Sort: &tid}})
		for j := range l.Spans {
			s := &l.Spans[j]
			of := event{Name: s.Name(), Cat: string(s.Kind), Phase: "X", Time: micros(s.From), Took: micros(s.Took()), PID: 1, TID: tid,
				Args: args{Epoch: &s.Epoch, Batch: &s.Batch, Batches: s.Batches, Samples: s.Samples, Why: s.Why}}
			if s.Samples > 0 {
				of.Args.Sample = &s.Sample
			}
			put(false, of)
		}
	}
	b.WriteString("]}\n")
	return errors.Join(err, b.Flush())
}

// Read reads what WriteJSON wrote. Anything else is an error.
func Read(r io.Reader) (*Timeline, error) {
	var d document
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		return nil, fmt.Errorf("timeline: not a timeline's JSON: %w", err)
	}
	if d.Other.Format != format {
		return nil, fmt.Errorf("timeline: the format is %q, want %q, as WriteJSON writes it", d.Other.Format, format)
	}
	t := &Timeline{Title: d.Other.Title, Notes: d.Other.Notes, Length: nanos(d.Other.Length)}
	lanes := map[int]int{}
	for i, e := range d.Events {
		switch {
		case e.Phase == "M" && e.Name == "thread_name" && e.Args.Number != nil:
			lanes[e.TID] = len(t.Lanes)
			t.Lanes = append(t.Lanes, Lane{Group: e.Args.Group, Number: *e.Args.Number})
		case e.Phase == "X":
			at, ok := lanes[e.TID]
			if !ok {
				return nil, fmt.Errorf("timeline: event %d is of thread %d, which has no name before it", i, e.TID)
			}
			from := nanos(e.Time)
			s := Span{Kind: Kind(e.Cat), From: from, To: from + nanos(e.Took), Batches: e.Args.Batches, Samples: e.Args.Samples, Why: e.Args.Why}
			for to, v := range map[*int]*int{&s.Epoch: e.Args.Epoch, &s.Batch: e.Args.Batch, &s.Sample: e.Args.Sample} {
				if v != nil {
					*to = *v
				}
			}
			t.Lanes[at].Spans = append(t.Lanes[at].Spans, s)
		}
	}
	return t, nil
}

// Name is the lane's name for people.
func (l *Lane) Name() string {
	if l.Number < 0 {
		return l.Group
	}
	return fmt.Sprintf("%s %d", l.Group, l.Number)
}

// Name is the span's name for people.
func (s *Span) Name() string {
	switch {
	case s.Kind == Idle:
		return "waits for " + whys[s.Why]
	case s.Samples > 1:
		return fmt.Sprintf("%s %d samples from %d on", s.Kind, s.Samples, s.Sample)
	case s.Samples == 1:
		return fmt.Sprintf("%s sample %d", s.Kind, s.Sample)
	case s.Batches > 1:
		return fmt.Sprintf("%s batches %d to %d", s.Kind, s.Batch, s.Batch+s.Batches-1)
	}
	return fmt.Sprintf("%s batch %d", s.Kind, s.Batch)
}

// whys are reasons in words, by cause.
var whys = map[string]string{
	"producers": "producers",
	"order":     "a slow sample",
	"host slot": "a free host slot",
	"leases":    "a slot that you hold",
	"copy":      "the copy",
	"transform": "the transform",
	"device":    "the device",
	"body":      "the loop",
}
