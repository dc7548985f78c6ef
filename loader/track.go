package loader

import (
	"slices"
	"sync"
)

// track is what is known of the places that a Run of a Stream comes by. A Cursor refers to
// one, and so is as small as any other; what a State of the place has to say is worked out
// when somebody asks.
//
// The shards' goroutines note a mark now and then, the merger how many samples of each
// shard a batch has come to. Both are forgotten when a later place is delivered.
type track struct {
	// A track that was made of a State has one place only, and this of it.
	told []ShardMark

	shards []int // the rank's
	mu     sync.Mutex
	notes  [][]note // by shard; the first is at or before the first place
	places []milestone
	counts [][]count // to be used again
	marks  [][]byte  // likewise
}

// note is a mark of a shard and where it was taken.
type note struct {
	pass   int
	read   int64
	mark   []byte // nil at the beginning of a pass
	replay bool   // the reader was asked for a mark behind it, and had none
}

// milestone is a place of the Run, without its track, and how far each shard is there.
type milestone struct {
	at     Cursor
	counts []count
}

// count is how far a shard is.
type count struct {
	given int64 // samples of it, under Options.Steps of all its passes
	pass  int
	read  int64 // records of the pass, from where the reader began
	ended bool
}

// newTrack is a track that begins at a place where the rank's shards have these marks.
func newTrack(at Cursor, from []ShardMark) *track {
	t := &track{}
	first := milestone{at: at.bare()}
	for _, m := range from {
		t.shards = append(t.shards, m.Shard)
		t.notes = append(t.notes, []note{{pass: m.Pass, mark: slices.Clone(m.Mark), replay: m.Replay}})
		first.counts = append(first.counts, count{given: m.Samples, pass: m.Pass, read: m.Leave, ended: m.Ended})
	}
	t.places = append(t.places, first)
	return t
}

// note notes that a shard's reader gave a mark. It is copied.
func (t *track) note(slot, pass int, read int64, mark []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var own []byte
	if last := len(t.marks) - 1; last >= 0 {
		own, t.marks = t.marks[last], t.marks[:last]
	}
	t.notes[slot] = append(t.notes[slot], note{pass: pass, read: read, mark: append(own[:0], mark...)})
}

// turn notes that a shard begins with a pass.
func (t *track) turn(slot, pass int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes[slot] = append(t.notes[slot], note{pass: pass})
}

// unmarked notes that a shard's reader had no mark to give.
func (t *track) unmarked(slot int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	notes := t.notes[slot]
	notes[len(notes)-1].replay = true
}

// pass notes a place, which the shards have come to.
func (t *track) pass(at Cursor, shards []*shard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at = at.bare()
	if last := &t.places[len(t.places)-1]; last.at.same(at) { // a batch of no rows
		last.counts = appendCounts(last.counts[:0], shards)
		return
	}
	var counts []count
	if last := len(t.counts) - 1; last >= 0 {
		counts, t.counts = t.counts[last], t.counts[:last]
	}
	t.places = append(t.places, milestone{at: at, counts: appendCounts(counts[:0], shards)})
}

func appendCounts(counts []count, shards []*shard) []count {
	for _, s := range shards {
		counts = append(counts, s.taken)
	}
	return counts
}

// delivered forgets what lies before a place.
func (t *track) delivered(at Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(at)
	if i <= 0 {
		return
	}
	for _, p := range t.places[:i] {
		t.counts = append(t.counts, p.counts)
	}
	t.places = slices.Delete(t.places, 0, i)
	for slot, c := range t.places[0].counts {
		n := newest(t.notes[slot], c)
		for _, old := range t.notes[slot][:n] {
			if old.mark != nil {
				t.marks = append(t.marks, old.mark)
			}
		}
		t.notes[slot] = slices.Delete(t.notes[slot], 0, n)
	}
}

// find is the index of a place, or -1.
func (t *track) find(at Cursor) int {
	return slices.IndexFunc(t.places, func(m milestone) bool { return m.at.same(at) })
}

// newest is the index of the last note that is not behind a count.
func newest(notes []note, c count) int {
	n := 0
	for i, note := range notes {
		if note.pass < c.pass || note.pass == c.pass && note.read <= c.read {
			n = i
		}
	}
	return n
}

// at returns the marks of the rank's shards at a place, nil if it is not known, or no more.
// They are the caller's.
func (t *track) at(at Cursor) []ShardMark {
	if t.told != nil {
		marks := slices.Clone(t.told)
		for i := range marks { // the State is the user's, and a reader may write to its mark
			marks[i].Mark = slices.Clone(marks[i].Mark)
		}
		return marks
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(at)
	if i < 0 {
		return nil
	}
	marks := make([]ShardMark, 0, len(t.shards))
	for slot, c := range t.places[i].counts {
		m := ShardMark{Shard: t.shards[slot], Pass: c.pass, Samples: c.given, Ended: c.ended}
		if !c.ended {
			n := t.notes[slot][newest(t.notes[slot], c)]
			m.Mark, m.Replay, m.Leave = slices.Clone(n.mark), n.replay, c.read-n.read
		}
		marks = append(marks, m)
	}
	return marks
}
