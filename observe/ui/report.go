package ui

import (
	"time"
)

// Format is Report.Format: what changes in its meaning, or is no longer there, makes another
// one.
const Format = "leat page 1"

// A Report is what a Page shows, as its report.json has it.
type Report struct {
	Format string `json:"format"`
	// Node is the machine's name, Process the program's number on it.
	Node    string    `json:"node"`
	Process int       `json:"process"`
	Taken   time.Time `json:"taken"`
	// Pipelines are in the order in which they were shown.
	Pipelines []Pipeline `json:"pipelines"`
}

// A Pipeline is what is said of one. All but Total, Place, Plan and Decisions is of the last
// Seconds.
type Pipeline struct {
	Name string `json:"name"`
	// Device is the device's name, empty without one.
	Device string `json:"device,omitempty"`
	// Rank is this program's, of Ranks.
	Rank  int `json:"rank"`
	Ranks int `json:"ranks"`
	// Recorded says that there is an observe.Recorder. Without one there are no times of
	// steps, no account of the device and no timeline.
	Recorded bool    `json:"recorded"`
	Seconds  float64 `json:"seconds"`

	Pace        Pace        `json:"pace"`
	Account     Account     `json:"account"`
	Explanation Explanation `json:"explanation"`
	Stages      []Stage     `json:"stages"`
	Times       []Times     `json:"times,omitempty"`
	Slowest     []Slow      `json:"slowest,omitempty"`
	Decisions   []Decision  `json:"decisions,omitempty"`
	Total       Total       `json:"total"`
	Place       Place       `json:"place"`
	// Plan is what was decided, a line each: see prefetch.Plan.
	Plan string `json:"plan"`
}

// Pace is how fast batches came, and how ready they were.
type Pace struct {
	SamplesPerSecond float64 `json:"samples_per_second"`
	BatchesPerSecond float64 `json:"batches_per_second"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	// Readiness is observe.Snapshot.Readiness.
	Readiness float64 `json:"readiness"`
	// Utilization is the share of time for which the compute stream worked, and Overlap that of
	// copying which was hidden behind it; nil where nobody knows.
	Utilization *float64 `json:"utilization,omitempty"`
	Overlap     *float64 `json:"overlap,omitempty"`
}

// An Account is where the time of steps went.
type Account struct {
	// Of is "device" where the device's account is there, or else "loop".
	Of string `json:"of"`
	// Steps is how many it is of.
	Steps int64 `json:"steps"`
	// Parts are all causes of package observe/journal, in its order. With Of "device" the part
	// "device" is its work, with "loop" it is a wait for that and "body" the loop's own work.
	Parts []Part `json:"parts"`
}

// A Part is what one cause took of all steps of an Account.
type Part struct {
	Cause   string  `json:"cause"`
	Seconds float64 `json:"seconds"`
}

// An Explanation is observe.Explanation.
type Explanation struct {
	Bottleneck string   `json:"bottleneck"`
	Share      float64  `json:"share"`
	Gain       float64  `json:"gain"`
	Sentences  []string `json:"sentences"`
}

// A Stage is a part of the way of batches, in order: what it held on average, and has room
// for.
type Stage struct {
	Name  string  `json:"name"`
	Holds float64 `json:"holds"`
	Room  float64 `json:"room"`
	// Unit is what is counted: "workers", "batches", or "busy" for a share of time, whose Room
	// is 1.
	Unit string `json:"unit"`
	// Note is another figure, in words.
	Note string `json:"note,omitempty"`
	// Slow says that most of what was waited for was this stage.
	Slow bool `json:"slow,omitempty"`
}

// Times are how long something took, in seconds: half of them up to P50, and so on.
type Times struct {
	Of   string  `json:"of"`
	N    int64   `json:"n"`
	Mean float64 `json:"mean_seconds"`
	P50  float64 `json:"p50_seconds"`
	P90  float64 `json:"p90_seconds"`
	P99  float64 `json:"p99_seconds"`
	Max  float64 `json:"max_seconds"`
}

// Slow is a sample that took long, of all time.
type Slow struct {
	Sample   int     `json:"sample"`
	Epoch    int     `json:"epoch"`
	Position int64   `json:"position"`
	Seconds  float64 `json:"seconds"`
}

// A Decision is something that was changed without being asked.
type Decision struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	From   int       `json:"from"`
	To     int       `json:"to"`
	Reason string    `json:"reason"`
}

// Total is since the pipeline was made.
type Total struct {
	Batches     int64 `json:"batches"`
	Samples     int64 `json:"samples"`
	Bytes       int64 `json:"bytes"`
	Substituted int64 `json:"substituted"`
	Skipped     int64 `json:"skipped"`
}

// Place is where in the data the pipeline is: of its State what says nothing of the data's
// contents.
type Place struct {
	Epoch int `json:"epoch"`
	// Epochs is their stated number, 0 if none is.
	Epochs   int   `json:"epochs"`
	Position int64 `json:"position"`
	// Samples is the length of the dataset, 0 if nobody knows.
	Samples     int64  `json:"samples"`
	Seed        uint64 `json:"seed,string"`
	Shuffle     bool   `json:"shuffle"`
	Fingerprint uint64 `json:"fingerprint,string"`
	Shards      int    `json:"shards,omitempty"`
}
