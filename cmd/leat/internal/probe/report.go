package probe

import (
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

// A Report is everything that was measured. Times in JSON are nanoseconds, rates
// bytes a second.
type Report struct {
	Date     time.Time `json:"date"`
	Machine  Machine   `json:"machine"`
	Device   Device    `json:"device"`
	Copies   []Copy    `json:"copies"`
	Both     Both      `json:"both_directions"`
	Pinning  Pinning   `json:"pinning"`
	Calls    []Call    `json:"calls"`
	Overlap  Overlap   `json:"overlap"`
	Products []Product `json:"products"`
	Streams  []Streams `json:"streams"`
	Priority Priority  `json:"priority"`
	Graph    Graph     `json:"graph"`
	Mapped   Mapped    `json:"mapped"`
	Peer     Peer      `json:"peer"`
	Pipeline Pipeline  `json:"pipeline"`
	Advice   Advice    `json:"advice"`
	// Skipped says what was not measured and why.
	Skipped []string `json:"skipped,omitempty"`
}

// Machine is the host.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	Go         string `json:"go"`
}

// ThisMachine describes the host.
func ThisMachine() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version()}
}

// Device is the device and its driver, as they describe themselves.
type Device struct {
	Name        string      `json:"name"`
	Driver      string      `json:"driver"`
	Version     string      `json:"driver_version,omitempty"` // where the system tells it
	Description string      `json:"description"`
	UUID        string      `json:"uuid,omitempty"`
	PCI         string      `json:"pci,omitempty"`
	Memory      units.Bytes `json:"memory_bytes"`
	CopyEngines int         `json:"copy_engines"`
	Modelled    bool        `json:"modelled"`
	Notes       []string    `json:"notes"`
}

// Describe is what dev says of itself.
func Describe(dev *device.Device) Device {
	p := dev.Properties()
	return Device{
		Name: dev.Name(), Driver: p.Kind, Version: driverVersion(p.Kind), Description: p.Description, UUID: p.UUID, PCI: p.PCI,
		Memory: units.Bytes(p.TotalBytes), CopyEngines: p.CopyEngines, Modelled: p.Modelled, Notes: dev.Notes(),
	}
}

// driverVersion is what Linux tells of the kernel's NVIDIA driver.
func driverVersion(kind string) string {
	if kind != "cuda" {
		return ""
	}
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.Join(strings.Fields(strings.TrimPrefix(line, "NVRM version:")), " ")
}

// A Copy is the rate of copies of one size back to back.
type Copy struct {
	// Way is "H2D" or "D2H", Memory the host's: "pinned" or "pageable".
	Way    string      `json:"way"`
	Memory string      `json:"memory"`
	Bytes  units.Bytes `json:"bytes"`
	Rate   units.Rate  `json:"bytes_per_second"`
}

// Both is what pinned copies in both directions at once move together.
type Both struct {
	Bytes units.Bytes `json:"bytes"` // of a copy
	Rate  units.Rate  `json:"bytes_per_second"`
}

// Pinning is the price of pinned memory.
type Pinning struct {
	Bytes  units.Bytes   `json:"bytes"`
	Time   time.Duration `json:"ns"`
	PerMiB time.Duration `json:"ns_per_mib"`
}

// A Call is what a call costs the goroutine that makes it.
type Call struct {
	Name string        `json:"name"`
	Time time.Duration `json:"ns"`
}

// Overlap is copies and a kernel of equal time, alone and side by side.
type Overlap struct {
	Bytes    units.Bytes   `json:"bytes"` // of a copy
	Copy     time.Duration `json:"copy_ns"`
	Kernel   time.Duration `json:"kernel_ns"`
	Together time.Duration `json:"together_ns"`
	// Hidden is the share of the shorter one that cost nothing, from 0 to 1.
	Hidden float64 `json:"hidden"`
}

// A Product is two products of square float32 matrices on one stream and on two.
// Both gave the same bits, and those of a reference.
type Product struct {
	Side    int           `json:"side"`
	One     time.Duration `json:"one_stream_ns"`
	Two     time.Duration `json:"two_streams_ns"`
	SpeedUp float64       `json:"speed_up"`
}

// Streams is the same work over more and more streams.
type Streams struct {
	Work  string        `json:"work"` // in words
	Times []StreamsTime `json:"times"`
}

// A StreamsTime is the time of the work on so many streams.
type StreamsTime struct {
	Streams int           `json:"streams"`
	Time    time.Duration `json:"ns"`
}

// Priority is how long a product takes that is asked for on a busy device, in a stream
// like all others and in one that is served first. Where the device has no priorities both
// are 0.
type Priority struct {
	Equal time.Duration `json:"equal_ns"`
	First time.Duration `json:"first_ns"`
}

// Graph is a step of short kernels, from its first call to its end on the device.
type Graph struct {
	Kernels  int           `json:"kernels"`
	Launched time.Duration `json:"launched_ns"`
	Replayed time.Duration `json:"replayed_ns"`
}

// Mapped is a kernel that reads rows in pinned memory, in random order.
type Mapped struct {
	Bytes    units.Bytes `json:"bytes"`
	RowBytes units.Bytes `json:"row_bytes"`
	Rate     units.Rate  `json:"bytes_per_second"`
}

// Peer is copies to another device.
type Peer struct {
	Name  string      `json:"name,omitempty"` // empty where there is none
	Way   string      `json:"way,omitempty"`
	Why   string      `json:"why,omitempty"`
	Bytes units.Bytes `json:"bytes"`
	Rate  units.Rate  `json:"bytes_per_second"`
}

// Pipeline is a stated batch and step through the prefetch API.
type Pipeline struct {
	Bytes   units.Bytes   `json:"bytes"`
	Compute time.Duration `json:"compute_ns"`
	Copy    time.Duration `json:"copy_ns"` // of a batch, alone
	Depths  []Depth       `json:"depths"`
}

// A Depth is the time from step to step with so many batches on the device.
type Depth struct {
	Depth int           `json:"depth"`
	Step  time.Duration `json:"step_ns"`
}
