package life

import "errors"

// Phase is how far a pipeline's end has come.
type Phase uint8

const (
	Live    Phase = iota // it may be read
	Closing              // Close has begun: nothing new begins
	Reaping              // what comes back is freed by who brings it
)

// String is the phase as reports name it.
func (p Phase) String() string { return [...]string{"live", "closing", "reaping"}[p] }

// Reader is who reads a pipeline.
type Reader uint8

const (
	Nobody  Reader = iota
	Reading        // a range, a Reader, or a call that must not meet one
	Mapping        // a Map
)

// String is the reader as reports name it.
func (r Reader) String() string { return [...]string{"nobody", "a reader", "a map"}[r] }

// Run is what works ahead of the reader.
type Run uint8

const (
	NoRun   Run = iota
	Running     // producers and uploader are at work, or wait for room
	Stuck       // they were told to end and could not be joined yet
)

// String is the run as reports name it.
func (r Run) String() string { return [...]string{"no run", "running", "stuck"}[r] }

// Pipeline is where a pipeline stands in its life. The zero value is a new one, which
// its owner uses: Users counts the others who use what is freed last.
type Pipeline struct {
	Phase  Phase
	Reader Reader
	Run    Run
	Users  int
	Left   bool // the owner has left: with the last of the users all is freed
}

// PipelineEvent is something that happens to a pipeline.
type PipelineEvent uint8

const (
	Read     PipelineEvent = iota // somebody begins to read
	MapOver                       // and maps what they read: the results are used too
	EndRead                       // nobody reads any more
	Begin                         // a run begins
	Stick                         // a run could not be joined
	Join                          // a run was joined
	Lend                          // a batch is the user's
	TakeBack                      // and was released
	Use                           // a reaper, or a map, uses what is freed last
	Unuse                         // and has done with it
	Shut                          // Close begins
	Reap                          // all that was submitted has ended, or has a reaper
	Leave                         // the owner has freed what is its own
)

// String is the event as reports name it.
func (e PipelineEvent) String() string {
	return [...]string{"read", "map", "end read", "begin", "stick", "join", "lend", "take back", "use", "unuse", "shut", "reap", "leave"}[e]
}

// Why an event can't happen now.
var (
	ErrBusy   = errors.New("somebody reads already")
	ErrClosed = errors.New("the pipeline is closed")
	ErrWrong  = errors.New("the event can't happen in this state")
)

// Next is the state behind e. The error is ErrBusy or ErrClosed where a user's call
// has come at the wrong time, and ErrWrong where the pipeline has made a mistake.
func (p Pipeline) Next(e PipelineEvent) (Pipeline, error) {
	possible := true
	switch e {
	case Read:
		switch {
		case p.Phase != Live:
			return p, ErrClosed
		case p.Reader != Nobody:
			return p, ErrBusy
		}
		p.Reader = Reading
	case MapOver:
		if p.Phase != Live {
			return p, ErrClosed
		}
		possible, p.Reader = p.Reader == Reading, Mapping
		p.Users++
	case EndRead:
		possible, p.Reader = p.Reader != Nobody, Nobody
	case Begin:
		if p.Phase != Live {
			return p, ErrClosed
		}
		possible, p.Run = p.Run == NoRun, Running
	case Stick:
		possible, p.Run = p.Run != NoRun, Stuck
	case Join:
		possible, p.Run = p.Run != NoRun, NoRun
	case Lend:
		if p.Phase != Live {
			return p, ErrClosed
		}
		possible = p.Run != NoRun
		p.Users++
	case Use:
		possible = !p.Freed()
		p.Users++
	case TakeBack, Unuse:
		possible = p.Users > 0
		p.Users--
	case Shut:
		possible, p.Phase = p.Phase == Live, Closing
	case Reap:
		possible, p.Phase = p.Phase != Live && p.Run == NoRun, Reaping
	case Leave:
		possible, p.Left = p.Phase == Reaping && !p.Left, true
	default:
		possible = false
	}
	if !possible {
		return p, ErrWrong
	}
	return p, nil
}

// Freed reports whether nobody uses what is freed last: the event that led here is to
// free it.
func (p Pipeline) Freed() bool { return p.Left && p.Users == 0 }

// Word is p as one word, for those who change it without a lock.
func (p Pipeline) Word() uint64 {
	w := uint64(p.Phase) | uint64(p.Reader)<<2 | uint64(p.Run)<<4 | uint64(p.Users)<<8
	if p.Left {
		w |= 1 << 6
	}
	return w
}

// PipelineOf is the state whose Word is w.
func PipelineOf(w uint64) Pipeline {
	return Pipeline{Phase: Phase(w & 3), Reader: Reader(w >> 2 & 3), Run: Run(w >> 4 & 3), Left: w>>6&1 == 1, Users: int(w >> 8)}
}
