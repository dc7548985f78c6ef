// Package inspect looks at data that was found: it draws samples, counts what they hold, and
// lists what can't be read.
//
//	inspect.go      what is looked at, and the report
//	sample.go       a sample's values, read outside of a batch
//	picture.go      pictures as characters
//	statistics.go   moments, counts and lengths
//	scan.go         all samples, on several goroutines
package inspect
