package loader

// SizeFrom is a batch size and when it begins.
type SizeFrom struct {
	// Sample is how many samples all ranks have been given when the batch size begins. A
	// step that has begun before keeps its own.
	Sample int64
	// BatchSize is the number of rows of one rank's batch.
	BatchSize int
}
