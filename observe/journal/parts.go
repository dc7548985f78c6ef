package journal

import "time"

// Parts is where time went: of a step, of many, or of a compute stream.
type Parts struct {
	// Producers is the time for which the batch's rows were not all written, while no later
	// batch was complete either: reading is the slower side.
	Producers time.Duration
	// Order is the time for which its rows were not all written, while a later batch was
	// complete: one slow sample held back what was ready.
	Order time.Duration
	// HostSlot is the time for which it had no host slot, because the copies out of all of
	// them were still to be done, behind the bus or behind compute.
	HostSlot time.Duration
	// Leases is the time for which it had no slot, because the user held all of them.
	Leases time.Duration
	// Copy is the time for which it was filled and its copy not submitted: a copy from
	// pageable memory blocked the uploader. Of a compute stream, the time for which that
	// waited for the copy itself.
	Copy time.Duration
	// Transform is the same for the calls of a Transform, and without a device for its work.
	Transform time.Duration
	// Device is the time for which a slot was free and a stream still read it. Of a compute
	// stream, the time for which that worked.
	Device time.Duration
	// Body is the time of the loop's body, or of a Map's step.
	Body time.Duration
}

// A Cause is what time went to: the name of a part.
type Cause string

// The causes, by the fields of Parts.
const (
	Producers Cause = "producers"
	Order     Cause = "order"
	HostSlot  Cause = "host slot"
	Leases    Cause = "leases"
	Copy      Cause = "copy"
	Transform Cause = "transform"
	Device    Cause = "device"
	Body      Cause = "body"
)

// Causes are all of them, in the order in which they are listed.
var Causes = [...]Cause{Producers, Order, HostSlot, Leases, Copy, Transform, Device, Body}

// Of is the part of a cause. It panics for what is none.
func (p *Parts) Of(c Cause) *time.Duration {
	switch c {
	case Producers:
		return &p.Producers
	case Order:
		return &p.Order
	case HostSlot:
		return &p.HostSlot
	case Leases:
		return &p.Leases
	case Copy:
		return &p.Copy
	case Transform:
		return &p.Transform
	case Device:
		return &p.Device
	case Body:
		return &p.Body
	}
	panic("journal: there is no cause " + string(c))
}

// Wait is all parts but the body.
func (p Parts) Wait() time.Duration {
	return p.Producers + p.Order + p.HostSlot + p.Leases + p.Copy + p.Transform + p.Device
}

// Sum is all parts.
func (p Parts) Sum() time.Duration { return p.Wait() + p.Body }

// Plus is the sums of the parts of both.
func (p Parts) Plus(q Parts) Parts {
	p.Producers += q.Producers
	p.Order += q.Order
	p.HostSlot += q.HostSlot
	p.Leases += q.Leases
	p.Copy += q.Copy
	p.Transform += q.Transform
	p.Device += q.Device
	p.Body += q.Body
	return p
}

// Minus is what p has more than q, which was taken before.
func (p Parts) Minus(q Parts) Parts {
	p.Producers -= q.Producers
	p.Order -= q.Order
	p.HostSlot -= q.HostSlot
	p.Leases -= q.Leases
	p.Copy -= q.Copy
	p.Transform -= q.Transform
	p.Device -= q.Device
	p.Body -= q.Body
	return p
}
