package observe

import "github.com/leat-go/leat/prefetch/group"

// TakeGroup takes a Snapshot of each device's pipeline of a group. With a *Recorder in the
// group's options each has a member of it. The body of a device's loop has the waits for other
// devices in it, and the time that it counts as the device's work the wait for them before its
// part of a step is submitted.
func TakeGroup(g *group.Group) (devices []*Snapshot) {
	plan, stats := g.Plan(), g.Stats()
	for i := range plan.Devices {
		devices = append(devices, take(plan.Devices[i], stats.Devices[i]))
	}
	return devices
}
