package loader

import "time"

// failure is what goes wrong at the shard's next sample, where no batch tells of it.
func (s *shard) failure(stage string, err error, origin Origin) *Error {
	at := s.at()
	return &Error{
		Epoch: s.pass, Batch: s.run.loader.split.number(Cursor{Position: at}), Sample: int(at), Position: at,
		Shard: s.number, Origin: origin, Stage: stage, Err: err,
	}
}

// enter notes the stage of the user's code that the goroutine goes into.
func (s *shard) enter(stage *string) { s.inside.Store(stage) }

// The stages, to be pointed at.
var stageIterate, stageClose, stageEncode = StageIterate, StageClose, StageEncode

// works counts the time for which the goroutine does not wait for room.
func (s *shard) works(yes bool) {
	now := int64(time.Since(s.run.began))
	if yes {
		s.since.Store(max(now, 1))
		return
	}
	if since := s.since.Swap(0); since != 0 {
		s.busy.Add(now - since)
	}
}

// worked is for how long it has worked.
func (s *shard) worked() time.Duration {
	d := s.busy.Load()
	if since := s.since.Load(); since != 0 {
		d += int64(time.Since(s.run.began)) - since
	}
	return time.Duration(d)
}

// suspect is the shard's goroutine, if it is in user code.
func (s *shard) suspect() (suspect, bool) {
	stage := s.inside.Load()
	if stage == nil {
		return suspect{}, false
	}
	at := s.position.at()
	who := suspect{
		epoch: int(s.run.dispatcher.epoch.Load()), number: s.run.loader.split.number(Cursor{Position: at}),
		sample: int(at), position: at, shard: s.number + 1, stage: *stage, goroutine: s.goroutine.Load(),
	}
	if s.limit != nil && *stage == StageEncode {
		who.goroutine = s.limit.goroutine.Load()
	}
	return who, true
}

// shardAt is the number of the shard that the sample at a position is of.
func (l *Loader) shardAt(position int64) int { return int(position % int64(l.shards)) }
