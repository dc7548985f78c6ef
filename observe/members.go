package observe

import "sync"

// members are the Recorders of a group's devices.
type members struct {
	mu  sync.Mutex
	all []*Recorder
}

// Member is the Recorder of the i-th device of a group, with the options of r. It is always
// the same one.
func (r *Recorder) Member(i int) *Recorder {
	m := &r.members
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.all) <= i {
		m.all = append(m.all, NewRecorder(r.options))
	}
	return m.all[i]
}
