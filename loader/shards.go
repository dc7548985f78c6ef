package loader

import (
	"context"
	"time"
)

// newMerger makes the merger of a Run, and its shards.
func newMerger(d *dispatcher) merging {
	l := d.run.loader
	m := &merger{intake: intake{dispatcher: d}}
	ranks, batch, own := int(l.split.ranks), l.layout.batch, l.Shards()
	for i := int(l.split.rank); i < l.shards; i += ranks {
		s := &shard{run: d.run, number: i}
		s.queue.init(l.shardAhead(max(batch/own, 1)))
		if l.options.Skips {
			s.scratch = newScratch(l)
			s.limit = newLimit(d.run)
		}
		m.shards = append(m.shards, s)
	}
	return m
}

// shardAhead is how many samples of a shard are read ahead, if a batch takes that many of it:
// two batches' part, or up to four of small ones. To wake a shard's goroutine takes as long
// as dozens of those, and it is woken when half of what it has read is taken. Farther ahead, a
// shard of few samples would be read pass after pass for steps that come much later.
func (l *Loader) shardAhead(part int) int {
	const most, small, smallBytes = 1024, 256, 256 << 10
	few := min(2*part, most)
	many := min(4*part, small, int(smallBytes/max(l.single.Size(), 1)))
	return max(few, many)
}

// launch starts the shards' goroutines at a place.
func (m *merger) launch(ctx context.Context, at Cursor) {
	from := m.run.loader.marksAt(at)
	m.track = newTrack(m.run.loader.normalize(at), from)
	m.alive = m.alive[:0]
	for i, s := range m.shards {
		s.begin(m.track, i, from[i])
		if !s.taken.ended {
			m.alive = append(m.alive, s)
		}
	}
	m.round()
	ctx, m.cancel = context.WithCancel(ctx)
	m.running = true
	for i, s := range m.shards {
		if s.taken.ended {
			continue
		}
		m.run.live.Add(1)
		m.joined.Add(1)
		go func() { // ends with its shard, or with ctx; end waits for it
			defer m.run.leave()
			defer m.joined.Done()
			s.loop(ctx, from[i])
		}()
	}
}

// end ends the shards' goroutines, waits for them, and discards what they have read ahead.
func (m *merger) end() {
	if !m.running {
		return
	}
	m.cancel()
	m.joined.Wait()
	for _, s := range m.shards {
		for s.queue.take(&m.entry) {
			m.discard(s, &m.entry)
		}
		s.queue.publish()
	}
	m.running = false
}

// discard ends a sample that no batch takes.
func (m *merger) discard(s *shard, e *entry) {
	if e.kind == aSample {
		at := position(s.taken.given, s.number, m.run.loader.shards)
		m.run.disposal.add(e.encoder, m.begin.Epoch, m.number(), at)
	}
}

// suspects implements merging.
func (m *merger) suspects() (all []suspect) {
	for _, shard := range m.shards {
		if s, ok := shard.suspect(); ok {
			all = append(all, s)
		}
	}
	return all
}

// reading implements merging.
func (m *merger) reading() (all []time.Duration) {
	for _, shard := range m.shards {
		all = append(all, shard.worked())
	}
	return all
}
