package loader

import "time"

// Times says when a delivered batch was made. From these instants a consumer works out
// who waited for whom.
type Times struct {
	// Asked is when the Run asked its Memory for the batch's slot: when few rows of
	// other batches were left for its workers.
	Asked time.Time
	// Opened is when the Run got the slot: no sample of the batch was read before.
	Opened time.Time
	// Filled is when the last of its rows was written.
	Filled time.Time
	// Overtaken is when the first of the batches behind it was filled, if that was before
	// this batch was filled. Otherwise it is the zero Time.
	Overtaken time.Time
}

// Held is how long this batch held up others: at least one of those behind it was filled
// already, and was not delivered because batches are delivered in order. The times of
// neighbours may overlap; Stats.WaitOrder counts each moment once.
func (t Times) Held() time.Duration {
	if t.Overtaken.IsZero() {
		return 0
	}
	return t.Filled.Sub(t.Overtaken)
}
