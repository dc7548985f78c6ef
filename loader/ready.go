package loader

import "context"

// Ready reports whether Next would return at once: a batch, an epoch's end or an
// error is there. A caller that takes several batches at a time asks it, so as not to wait
// for more while somebody waits for what there is.
func (r *Run) Ready() bool {
	r.consumer.Lock()
	defer r.consumer.Unlock()
	if r.final != nil || r.over(context.Background()) != nil {
		return true
	}
	if r.atBorder && r.loader.options.Epochs == 0 {
		return false // Next begins the next epoch
	}
	if r.head == nil && !r.ended {
		select {
		case b, ok := <-r.order:
			r.head, r.ended = b, ok && b == nil
			if !ok {
				return true
			}
		default:
			return false
		}
	}
	return r.ended || r.arrivals.have(r.head)
}
