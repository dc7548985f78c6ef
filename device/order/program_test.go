package order_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
)

var programs = flag.Int("programs", 100_000, "random programs to run")

// A random program uses two devices that are peers. A stream and an event belong to
// device (number mod 2); memories 0 and 2 are the first device's and 1 the second's, 3
// is pinned on the first, and 4 is any memory.
const (
	streamsOf  = 4
	eventsOf   = 4
	memoriesOf = 5
	memorySize = 64
)

type kind uint8

const (
	accesses kind = iota // submitted to a stream
	hostUses
	record
	wait
	syncEvent
	eventDone
	elapsed
	syncStream
	streamDone
	syncDevice
	hostFunc
	runFunc
	freeMemory // and allocate it again
	newStream  // in the place of one, which is freed
	adoptStream
	kinds
)

// orders reports whether an instruction may be what another's order depends on.
func (k kind) orders() bool { return k >= record && k <= runFunc }

// An instr is one instruction. What it refers to, it refers to by number.
type instr struct {
	kind          kind
	stream, event int
	other         int // elapsed: the other event
	memory        int
	form          form
	uses          []use
	done          bool
}

// A form is how an access is submitted.
type form uint8

const (
	launch form = iota
	memset
	copyH2D
	copyD2H
	copyD2D
	copyPeer
	otherMeans
)

func (i instr) String() string {
	return fmt.Sprintf("{kind %d stream %d event %d memory %d form %d uses %v done %v}", i.kind, i.stream, i.event, i.memory, i.form, i.uses, i.done)
}

// random is an instruction, of those that need no fixing a correct one or not.
func random(r *rand.Rand) instr {
	i := instr{kind: kind(r.IntN(int(kinds))), stream: r.IntN(streamsOf), event: r.IntN(eventsOf), done: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		i.kind = accesses
	}
	i.other = (i.event + 2) % eventsOf
	i.memory = r.IntN(3)
	part := func(memory int, write bool) use {
		at := r.IntN(memorySize)
		return use{memory, at, 1 + r.IntN(memorySize-at), write}
	}
	device := i.stream % 2
	on := func() int { return [][]int{{0, 2}, {1}}[device][r.IntN(2-device)] }
	switch i.kind {
	case hostUses:
		i.uses = []use{part(3+r.IntN(2), r.IntN(2) == 0)}
	case adoptStream, newStream:
		if r.IntN(3) > 0 {
			i.kind = wait
		}
	case record, hostFunc:
		i.event = i.event&^1 | device
	case accesses:
		i.form = form(r.IntN(int(otherMeans) + 1))
		from, to := part(on(), false), part(on(), true)
		switch i.form {
		case memset:
			i.uses = []use{to}
		case copyH2D:
			from.memory = 3 + r.IntN(2)
		case copyD2H:
			to.memory = 3 + r.IntN(2)
		case copyPeer:
			if r.IntN(2) == 0 {
				from.memory = (1 - device)
			} else {
				to.memory = (1 - device)
			}
		case launch, otherMeans:
			n := 1
			if i.form == launch {
				n = 1 + r.IntN(3)
			}
			for range n {
				u := part(on(), r.IntN(2) == 0)
				if device == 0 && r.IntN(4) == 0 {
					u.memory = 3
				}
				i.uses = append(i.uses, u)
			}
		}
		if i.uses == nil { // a copy
			n := min(from.n, to.n)
			if apart := max(from.at-to.at, to.at-from.at); from.memory == to.memory && apart > 0 {
				n = min(n, apart) // a copy's two sides don't overlap
			}
			from.n, to.n = n, n
			i.uses = []use{from, to}
		}
	}
	return i
}

// judge runs an instruction on the reference, and reports whether it is refused.
func (r *reference) judge(i instr, streamIDs []int) (refused bool) {
	id := streamIDs[i.stream]
	switch i.kind {
	case accesses:
		if len(r.races(i.uses, r.would(id))) > 0 {
			return true
		}
		r.access(id, i.uses)
	case hostUses:
		return len(r.races(i.uses, &r.host)) > 0
	case freeMemory:
		return len(r.races([]use{{i.memory, 0, memorySize, true}}, &r.host)) > 0
	case record:
		r.record(id, i.event)
	case wait:
		r.wait(id, i.event)
	case syncEvent:
		r.sawEvent(i.event)
	case eventDone:
		if i.done {
			r.sawEvent(i.event)
		}
	case elapsed: // measures, and orders nothing
	case syncStream:
		r.sawStream(id)
	case streamDone:
		if i.done {
			r.sawStream(id)
		}
	case syncDevice:
		r.sawDevice(i.stream % 2)
	case hostFunc:
		r.funcs[i.stream%2] = r.step(id)
	case runFunc:
		step, ok := r.funcs[i.stream%2]
		r.saw(step, ok)
		delete(r.funcs, i.stream%2)
	case newStream:
		next := len(r.deviceOf)
		streamIDs[i.stream] = next
		r.deviceOf[next] = i.stream % 2
	}
	return false
}

func (r *reference) streams() []int {
	var ids []int
	for s := range streamsOf {
		r.deviceOf[s] = s % 2
		ids = append(ids, s)
	}
	return ids
}

// correct is a random program without a race: before whatever would be one it has
// what orders it, in one of the ways there are.
func correct(rnd *rand.Rand) []instr {
	ref := newReference()
	ids := ref.streams()
	var program []instr
	run := func(i instr) bool {
		program = append(program, i)
		return ref.judge(i, ids)
	}
	slot := func(step int) int { // a living stream behind the step, if there is one
		for s, id := range ids {
			if last, ok := ref.last[id]; ok && (last == step || ref.before[last].has(step)) {
				return s
			}
		}
		return -1
	}
	for len(program) < 12+rnd.IntN(24) {
		i := random(rnd)
		before, uses := &ref.host, i.uses
		host := i.kind != accesses
		if i.kind == freeMemory {
			uses = []use{{i.memory, 0, memorySize, true}}
		} else if !host {
			before = ref.would(ids[i.stream])
		}
		for i.kind == accesses || i.kind == hostUses || i.kind == freeMemory {
			with := ref.races(uses, before)
			if len(with) == 0 {
				break
			}
			s := slot(with[rnd.IntN(len(with))])
			e := rnd.IntN(eventsOf)&^1 | max(s, 0)%2
			switch {
			case s < 0: // its stream is gone
				run(instr{kind: syncDevice, stream: 0})
				run(instr{kind: syncDevice, stream: 1})
			case !host && rnd.IntN(3) > 0:
				run(instr{kind: record, stream: s, event: e})
				run(instr{kind: wait, stream: i.stream, event: e})
			case rnd.IntN(2) == 0:
				run(instr{kind: syncStream, stream: s})
			case rnd.IntN(2) == 0:
				run(instr{kind: record, stream: s, event: e})
				run(instr{kind: eventDone, event: e, done: true})
			case rnd.IntN(2) == 0:
				run(instr{kind: hostFunc, stream: s})
				run(instr{kind: runFunc, stream: s})
			default:
				run(instr{kind: record, stream: s, event: e})
				run(instr{kind: syncEvent, event: e})
			}
			if !host {
				before = ref.would(ids[i.stream])
			}
		}
		if run(i) {
			panic("the reference refuses what it has made")
		}
	}
	return program
}

// A machine runs a program on two checked devices.
type machine struct {
	checker *order.Checker
	drivers [2]*fake
	devices [2]*device.Device
	streams [streamsOf]*device.Stream
	events  [eventsOf]*device.Event
	buffers [3]*device.Buffer
	pinned  *device.HostBuffer
	host    []byte
	err     error
}

func newMachine(o order.Options) *machine {
	m := &machine{checker: order.New(o), host: make([]byte, memorySize)}
	handles := new(uintptr)
	for i := range m.devices {
		m.drivers[i] = newFake(i, handles)
		m.devices[i] = device.New(m.checker.Wrap(m.drivers[i]))
	}
	must := func(err error) { m.err = errors.Join(m.err, err) }
	var err error
	for i := range m.streams {
		m.streams[i], err = m.devices[i%2].NewStream(device.StreamOptions{Name: fmt.Sprint("s", i)})
		must(err)
	}
	for i := range m.events {
		m.events[i], err = m.devices[i%2].NewEvent(device.EventOptions{Name: fmt.Sprint("e", i)})
		must(err)
	}
	for i := range m.buffers {
		m.buffers[i], err = m.devices[i%2].Alloc(memorySize)
		must(err)
	}
	m.pinned, err = m.devices[0].AllocHost(memorySize, device.HostOptions{})
	must(err)
	return m
}

var anyKernel = &device.Kernel{Name: "any", Go: func(*device.Args) {}}

func (m *machine) view(u use) device.View {
	var v device.View
	switch u.memory {
	case 3:
		v, m.err = m.pinned.View()
	default:
		v = m.buffers[u.memory].View()
	}
	return v.Slice(int64(u.at), int64(u.n))
}

func (m *machine) bytes(u use) []byte {
	if u.memory == 3 {
		return m.pinned.Bytes()[u.at : u.at+u.n]
	}
	return m.host[u.at : u.at+u.n]
}

func mode(write bool) device.Access {
	if write {
		return device.InOut
	}
	return device.In
}

// run makes the instruction's calls.
func (m *machine) run(i instr) error {
	ctx := context.Background()
	s, e, d := m.streams[i.stream], m.events[i.event], m.devices[i.stream%2]
	switch i.kind {
	case accesses:
		return m.access(s, i)
	case hostUses:
		if i.uses[0].write {
			return d.HostWrites(m.bytes(i.uses[0]))
		}
		return d.HostReads(m.bytes(i.uses[0]))
	case record:
		return s.Record(e)
	case wait:
		if e.Records() == 0 && invariantsOn {
			return nil
		}
		return s.Wait(e)
	case syncEvent:
		return e.Synchronize(ctx)
	case eventDone:
		m.drivers[i.event%2].done = i.done
		_, err := e.Done()
		return err
	case elapsed:
		_, err := device.Elapsed(e, m.events[i.other])
		return err
	case syncStream:
		return s.Synchronize(ctx)
	case streamDone:
		m.drivers[i.stream%2].done = i.done
		_, err := s.Done()
		return err
	case syncDevice:
		return d.Synchronize(ctx)
	case hostFunc:
		return s.HostFunc(func() {})
	case runFunc:
		d := m.drivers[i.stream%2]
		if f := d.funcs; f != nil {
			d.funcs = nil
			f()
		}
	case freeMemory:
		if err := m.buffers[i.memory].Close(); err != nil {
			return err
		}
		b, err := m.devices[i.memory%2].Alloc(memorySize)
		m.buffers[i.memory] = b
		return err
	case newStream:
		if err := s.Close(); err != nil {
			return err
		}
		var err error
		m.streams[i.stream], err = d.NewStream(device.StreamOptions{Name: s.Name() + "'"})
		return err
	case adoptStream: // the same stream by another handle
		other, err := d.StreamFromHandle(uintptr(s.Handle()))
		m.streams[i.stream] = other
		return errors.Join(err, s.Close())
	}
	return nil
}

func (m *machine) access(s *device.Stream, i instr) error {
	u := i.uses
	switch i.form {
	case memset:
		return s.Memset(m.view(u[0]), 0)
	case copyH2D:
		return s.CopyH2D(m.view(u[1]), m.bytes(u[0]))
	case copyD2H:
		return s.CopyD2H(m.bytes(u[1]), m.view(u[0]))
	case copyD2D:
		return s.CopyD2D(m.view(u[1]), m.view(u[0]))
	case copyPeer:
		return s.CopyPeer(m.view(u[1]), m.view(u[0]))
	case otherMeans:
		return s.Uses(m.view(u[0]), mode(u[0].write))
	}
	l := device.Launch{Kernel: anyKernel, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	for _, x := range u {
		l.Args.AddMemory(m.view(x).Address(), int64(x.n), mode(x.write))
	}
	return s.Launch(&l)
}

// verdicts are what the machine refuses, or an error of another kind.
func verdicts(program []instr, o order.Options) (refused []bool, c *order.Checker, err error) {
	m := newMachine(o)
	for _, i := range program {
		err := m.run(i)
		var report *order.Error
		if err != nil && !errors.As(err, &report) {
			return nil, nil, err
		}
		refused = append(refused, err != nil)
	}
	return refused, m.checker, m.err
}

func judge(program []instr) (refused []bool) {
	ref := newReference()
	ids := ref.streams()
	for _, i := range program {
		refused = append(refused, ref.judge(i, ids))
	}
	return refused
}

// A hundred thousand correct programs give no report; without one of the instructions
// that order them, exactly the accesses are reported that the reference finds
// unordered.
func TestRandomPrograms(t *testing.T) {
	n := *programs
	if testing.Short() || raceEnabled {
		n /= 20
	}
	const shards = 4
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			mutants, racy := 0, 0
			for seed := shard; seed < n; seed += shards {
				rnd := rand.New(rand.NewPCG(uint64(seed), 1))
				program := correct(rnd)
				refused, c, err := verdicts(program, order.Options{})
				require.NoError(t, err)
				if slices.Contains(refused, true) {
					t.Fatalf("seed %d: a correct program is reported: %v\n%v", seed, c.Err(), program)
				}
				if seed/shards%4 == 0 {
					mutants++
					if mutate(t, rnd, seed, program) {
						racy++
					}
				}
			}
			require.Greater(t, racy, mutants/20, "of %d mutants", mutants)
		})
	}
}

// mutate leaves out an instruction that orders others, and reports whether that made a
// race of it.
func mutate(t *testing.T, rnd *rand.Rand, seed int, program []instr) bool {
	var removable []int
	for k, i := range program {
		if i.kind.orders() {
			removable = append(removable, k)
		}
	}
	if len(removable) == 0 {
		return false
	}
	k := removable[rnd.IntN(len(removable))]
	mutant := slices.Delete(slices.Clone(program), k, k+1)
	want := judge(mutant)
	refused, c, err := verdicts(mutant, order.Options{})
	require.NoError(t, err)
	if !slices.Equal(want, refused) {
		t.Fatalf("seed %d without instruction %d: refused %v, want %v\n%v\n%v", seed, k, refused, want, mutant, c.Err())
	}
	_, listed, err := verdicts(mutant, order.Options{ListOnly: true})
	require.NoError(t, err)
	require.Equal(t, slices.Contains(want, true), listed.Err() != nil, "seed %d", seed)
	return listed.Err() != nil
}

var _ driver.Peer = (*fake)(nil)
