package observe

// Latencies has snapshots of r tell that goroutines waited for a processor as h says.
func Latencies(r *Recorder, h Histogram) { r.latencies = func() Histogram { return h } }
