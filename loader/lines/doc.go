// Package lines has the lines of text files by number, in any order. A file is read through
// once, to find where its lines are; that is kept in an index beside the file, for all later
// runs and for other processes.
//
//	files, err := source.Glob("corpus/*.txt")
//	data, err := lines.Open(ctx, files, fields, encode, lines.Options{})
//	defer data.Close()
//
// A line is what a function makes a sample of. Packages jsonl and csv are this one with such
// functions.
//
// Compressed files have no lines by number: NewStream has theirs one after the other. For text
// that need not be shuffled as a whole, stream.Lines needs no index.
//
// # Indexes
//
// An index is one file, which is put in its place when it is whole: any number of processes
// may open the same files at once, and any may be killed. It is used again if it was made of
// a file of the same size and version (time of change, and number in the file system), and else
// made anew. Where it can't be written it is held in memory, 16 bytes a line, and the next run
// reads the file through again. Dataset.Indexes says what was done and why.
//
// It has a checksum of each line. A line that is read and is not the one that the index knows,
// because somebody has changed the file meanwhile, or has changed it and given it its old time,
// is an error that wraps source.ErrChanged: never another line, and never a part of one.
package lines
