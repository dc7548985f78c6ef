package cpu

import "time"

// The presets are Models of named cards, each by value: change what you like.

// H200 is one NVIDIA H200 on PCIe 5.0 x16.
//
// Measured on one with a prototype of this library's protocol: pinned H2D copies
// back to back run at 55.5 GB/s from 64 MiB up, 53 at 4 MiB, 48 at 1 MiB, 34 at
// 256 KiB and 16 at 64 KiB, which a latency of 3 µs a copy explains to within 3%;
// D2H alone is as fast; pageable copies run at 9 to 15 GB/s; 64 short kernels
// launched one by one take 312 µs, replayed as one graph 75 µs. From the data sheet: 141 GB of memory at
// 4.8 TB/s, which a copy on the device traverses twice; NVLink to other GPUs at
// 900 GB/s, half of it each way. The latency of a copy over it is taken to be that
// of the others.
//
// Left out: both directions at once share 96 GB/s.
func H200() Model {
	return Model{
		Name:          "H200 on PCIe 5.0 x16",
		MemoryBytes:   141e9,
		H2D:           Link{BytesPerSecond: 55.5e9, Latency: 3 * time.Microsecond},
		D2H:           Link{BytesPerSecond: 55.5e9, Latency: 3 * time.Microsecond},
		D2D:           Link{BytesPerSecond: 2.4e12, Latency: 3 * time.Microsecond},
		Peer:          Link{BytesPerSecond: 450e9, Latency: 3 * time.Microsecond},
		Pageable:      Link{BytesPerSecond: 12e9, Latency: 3 * time.Microsecond},
		KernelLatency: 4875 * time.Nanosecond,
		NodeLatency:   1096 * time.Nanosecond,
	}
}

// PCIe4Consumer is a consumer card on PCIe 4.0 x16 with one copy engine for both
// directions, so that copies in and copies out take turns.
//
// The link is computed from the PCI Express 4.0 specification: 16 lanes of
// 16 GT/s with 128b/130b coding carry 31.5 GB/s, of which packets with a payload
// of 128 bytes (what most consumer boards negotiate) and 24 bytes of framing,
// header and checks leave 26.5 GB/s. The card is a middling one of that
// generation: 12 GB at 360 GB/s, traversed twice by a copy on the device. The
// latencies, and the rate of pageable copies, are those measured for the H200:
// they are the driver's and the host's more than the card's. Copies to another card
// travel the same slots.
func PCIe4Consumer() Model {
	return Model{
		Name:              "consumer card on PCIe 4.0 x16 with one copy engine",
		MemoryBytes:       12e9,
		SharedCopyEngines: true,
		H2D:               Link{BytesPerSecond: 26.5e9, Latency: 3 * time.Microsecond},
		D2H:               Link{BytesPerSecond: 26.5e9, Latency: 3 * time.Microsecond},
		D2D:               Link{BytesPerSecond: 180e9, Latency: 3 * time.Microsecond},
		Peer:              Link{BytesPerSecond: 26.5e9, Latency: 3 * time.Microsecond},
		Pageable:          Link{BytesPerSecond: 12e9, Latency: 3 * time.Microsecond},
		KernelLatency:     4875 * time.Nanosecond,
		NodeLatency:       1096 * time.Nanosecond,
	}
}
