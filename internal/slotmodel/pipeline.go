package slotmodel

import (
	"fmt"

	"github.com/leat-go/leat/internal/life"
)

// A Slip is a mistake in what is done around the life of a pipeline.
type Slip uint8

// The slips.
const (
	NoSlip           Slip = iota
	ShareStuck            // a run that Close could not join stays where others find it
	BeginBehindClose      // who waited for their turn goes on although Close came meanwhile
	ReapStuck             // Close frees although the run is not joined
	CloseUnasked          // Close does not wait for its turn
	TakeBackFirst         // a lease ends before its slot is back
	UnuseFirst            // a Map's use ends before what it leaves has a reaper
	ForgetOrphan          // a slot that comes back after Close has no reaper
	LeaveTwice            // the owner leaves twice
	ForgetEndRead         // a reader that could not begin still counts
	StepOutlivesMap       // a Map ends although its step has not returned
	NextImpatient         // Next is ErrBusy, whoever has the turn
)

// String is the slip's name.
func (s Slip) String() string {
	return [...]string{"NoSlip", "ShareStuck", "BeginBehindClose", "ReapStuck", "CloseUnasked", "TakeBackFirst", "UnuseFirst",
		"ForgetOrphan", "LeaveTwice", "ForgetEndRead", "StepOutlivesMap", "NextImpatient"}[s]
}

// PipelineOptions say which life of a pipeline to explore.
type PipelineOptions struct {
	// Sessions is how many Readers and Maps the user opens, one after the other, and
	// Nexts how often each calls Next.
	Sessions, Nexts int
	// Slots is how many there are: 1 or 2.
	Slots int
	// Helper has another goroutine call Quiesce, Seek or Start.
	Helper bool
	// Slip is what is wrong.
	Slip Slip
	// Next and Freed are the machine. Nil means that of package life.
	Next  func(life.Pipeline, life.PipelineEvent) (life.Pipeline, error)
	Freed func(life.Pipeline) bool
}

// ExplorePipeline goes through every interleaving of the goroutines that use a pipeline,
// until one breaks a promise: none with fewer steps does.
func ExplorePipeline(o PipelineOptions) Result {
	if o.Next == nil {
		o.Next = life.Pipeline.Next
	}
	if o.Freed == nil {
		o.Freed = life.Pipeline.Freed
	}
	m := &lifeModel{o}
	sp := space[pipeline]{steps: m.steps(), unfinished: m.unfinished, broken: func(s *pipeline) string { return s.broken.String() }}
	var s pipeline
	s.user.left = int8(o.Sessions)
	return sp.explore(s)
}

type lifeModel struct{ PipelineOptions }

// where a slot is.
type where uint8

const (
	inRing where = iota
	inItems
	leased
	orphaned // back after Close: it has a reaper
	freed
)

// deviceSlot is a slot, of one batch.
type deviceSlot struct {
	where where
	owner who // of the lease
}

// working is what the run's goroutines do.
type working uint8

const (
	resting working = iota // there are none
	busy
	hanging // in the user's code, which does not return yet
	over
)

// who are the goroutines, as far as they have a program here.
type who int8

const (
	nobody who = iota
	user
	stepper  // of a Map
	finisher // of a Map whose step was stuck when the loop was left
	helper
	closer
	reaper
	releaser // ends leases, at any time
)

// caller is where a goroutine stands.
type caller struct {
	pc                 pc
	next, ready, stop_ pc   // where it goes on behind Next, ready and stop
	call               call // what it is in
	left, nexts        int8 // sessions, and in one the calls of Next, that may come yet
	slot               int8 // in hand
	failed             bool // what the last of those returned
	maps               bool // it uses results
}

// pipeline is all there is. It is made of single bytes, which hash fast.
type pipeline struct {
	life   life.Pipeline
	turn   who
	closed bool
	quiet  bool

	run       bool // a run is where others find it
	cancelled bool
	working   working
	hung      bool // it has been

	slots                           [2]deviceSlot
	ringClosed, poolFreed           bool
	reapers                         int8 // of Maps' results
	maps                            int8 // that use results
	leaving                         bool // the stepper is told to end
	frees                           int8 // of what is freed last
	readers                         int8 // who has begun to read and has not ended
	shut                            bool // Close has begun
	user, stepper, finisher, helper caller
	closer, reaper, releaser        caller
	broken                          breach
}

func (s *pipeline) caller(w who) *caller {
	return [...]*caller{nil, &s.user, &s.stepper, &s.finisher, &s.helper, &s.closer, &s.reaper, &s.releaser}[w]
}

// breach is a promise that is broken.
type breach struct {
	rule  rule
	event life.PipelineEvent
	life  life.Pipeline
}

type rule uint8

const (
	noRule rule = iota
	impossibleEvent
	wronglyBusy
	wronglyClosed
	twoReaders
	readAfterClose
	leaseAfterShut
	actsClosed
	freedInUse
	freedTwice
	slotInUse
	reapedRun
	usedFreed
	nextBusy
)

func (s *pipeline) breach(r rule) {
	if s.broken.rule == noRule {
		s.broken.rule = r
	}
}

func (b breach) String() string {
	if b.rule == impossibleEvent {
		return fmt.Sprintf("%v while %+v", b.event, b.life)
	}
	return [...]string{"", "", "ErrBusy, and nobody reads", "ErrClosed, and nobody has called Close", "two read at once",
		"somebody begins to read after Close", "a batch is lent after Close has begun", "a call changes what is closed",
		"what is freed last is in use", "what is freed last is freed twice", "a slot is freed that is in use",
		"what a run uses is freed, and it goes on", "what is freed is used", "Next is ErrBusy, and nobody else is in it"}[b.rule]
}

// step takes the pipeline to the state behind e, as prefetch's lifecycle does.
func (m *lifeModel) step(s *pipeline, e life.PipelineEvent) error {
	next, err := m.Next(s.life, e)
	switch err {
	case nil:
		s.life = next
	case life.ErrBusy:
		if s.readers == 0 || s.shut {
			s.breach(wronglyBusy)
		}
	case life.ErrClosed:
		if !s.shut {
			s.breach(wronglyClosed)
		}
	default:
		s.impossible(e)
	}
	return err
}

func (s *pipeline) impossible(e life.PipelineEvent) {
	if s.broken.rule == noRule {
		s.broken = breach{impossibleEvent, e, s.life}
	}
}

// must is step for an event that no user brings about.
func (m *lifeModel) must(s *pipeline, e life.PipelineEvent) {
	if err := m.step(s, e); err != nil {
		s.impossible(e)
	}
}

// endUse ends a use of what is freed last, which the last one frees.
func (m *lifeModel) endUse(s *pipeline, e life.PipelineEvent) {
	if m.must(s, e); !m.Freed(s.life) {
		return
	}
	s.frees++
	if s.frees > 1 {
		s.breach(freedTwice)
	}
	if s.maps > 0 || s.reapers > 0 {
		s.breach(freedInUse)
	}
	for _, d := range s.slots {
		if d.where == leased || d.where == orphaned {
			s.breach(freedInUse)
		}
	}
}

// unfinished says what is missing in a state in which nobody can go on.
func (m *lifeModel) unfinished(s *pipeline) string {
	switch {
	case s.user.pc != done || s.closer.pc != done || s.helper.pc != outside || s.releaser.pc != outside,
		s.reaper.pc != outside && s.reaper.pc != done, s.finisher.pc != outside && s.finisher.pc != done, s.stepper.pc != outside && s.stepper.pc != stepped && s.stepper.pc != done,
		s.working == busy || s.working == hanging || s.turn != nobody:
		return "nobody can go on"
	case s.frees != 1 || !s.poolFreed:
		return "something is never freed"
	case s.readers != 0:
		return "somebody reads for ever"
	}
	for _, d := range s.slots[:m.Slots] {
		if d.where != freed {
			return "a slot is never freed"
		}
	}
	return ""
}
