package slots

import "errors"

// TakeFailed takes the slots that are out of use, for Renew and Back when they have come to rest.
func (r *Ring) TakeFailed() []*Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := r.failed
	r.failed = nil
	return failed
}

// Retire takes the slots that are back. From here on orphan gets those that come back.
func (r *Ring) Retire(orphan func(*Slot)) []*Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orphan = orphan
	back := append(r.free, r.failed...)
	r.free, r.failed = nil, nil
	return back
}

// Keep keeps a slot that could not be closed yet.
func (r *Ring) Keep(s *Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, s)
}

// Close closes every slot; nothing has run yet.
func (r *Ring) Close() error {
	var errs []error
	for _, s := range r.slots {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
