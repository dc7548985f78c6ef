package observe

import (
	"sync"

	"github.com/leat-go/leat/observe/journal"
)

// members are the Recorders of a group's devices.
type members struct {
	mu  sync.Mutex
	all []*Recorder
}

// Member implements journal.Grouped: it is the Recorder of the i-th device of a group, with
// the options of r, and always the same one. Its Timeline is of that device.
func (r *Recorder) Member(i int) journal.Recorder {
	m := &r.members
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.all) <= i {
		m.all = append(m.all, NewRecorder(r.options))
	}
	return m.all[i]
}
