package devicetest

import "fmt"

// Op names a method of driver.Device, driver.Peer or driver.Grapher.
type Op uint8

// The methods that a Tap counts. WaitPeer counts as Wait.
const (
	Memory Op = iota
	Synchronize
	Close
	NewStream
	AdoptStream
	FreeStream
	StreamDone
	SynchronizeStream
	NewEvent
	FreeEvent
	Record
	Wait
	EventDone
	SynchronizeEvent
	Elapsed
	Alloc
	Free
	AllocHost
	FreeHost
	RegisterHost
	UnregisterHost
	HostAddress
	CopyH2D
	CopyD2H
	CopyD2D
	CopyPeer
	Memset
	HostFunc
	Launch
	BeginCapture
	EndCapture
	Capturing
	GraphNodes
	FreeGraph
	Instantiate
	FreeExec
	LaunchGraph
	UpdateExec
	ops
)

var opNames = [ops]string{
	"Memory", "Synchronize", "Close",
	"NewStream", "AdoptStream", "FreeStream", "StreamDone", "SynchronizeStream",
	"NewEvent", "FreeEvent", "Record", "Wait", "EventDone", "SynchronizeEvent", "Elapsed",
	"Alloc", "Free", "AllocHost", "FreeHost", "RegisterHost", "UnregisterHost", "HostAddress",
	"CopyH2D", "CopyD2H", "CopyD2D", "CopyPeer", "Memset", "HostFunc", "Launch",
	"BeginCapture", "EndCapture", "Capturing", "GraphNodes", "FreeGraph",
	"Instantiate", "FreeExec", "LaunchGraph", "UpdateExec",
}

// String is the method's name.
func (o Op) String() string {
	if o >= ops {
		return fmt.Sprintf("devicetest.Op(%d)", uint8(o))
	}
	return opNames[o]
}

// Ops returns every Op, for tests that fail each in turn.
func Ops() []Op {
	all := make([]Op, ops)
	for i := range all {
		all[i] = Op(i)
	}
	return all
}
