// Package found opens data of which nothing is known but where it is: it tells the format by
// the names and the first bytes of files, and the fields by the first samples.
//
//	files.go     which files a path stands for
//	format.go    which format a file has
//	set.go       what was found
//	program.go   the Go program that loads it
//	parts.go     what the parts of a sample are, where nothing says it
//	arrays.go, pictures.go, tables.go, tokens.go, records.go    the formats
package found
