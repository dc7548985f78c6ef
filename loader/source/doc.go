// Package source says where bytes come from: files by path, lists of them, globs, and
// whatever an fs.FS holds. A store of objects is a Source as soon as it has the two
// methods of one.
//
//	Source       something with a name that can be opened; cheap to hold a million of
//	File         an open one: bytes by offset, with a context, for any number of goroutines
//	Path, List   files of the operating system
//	Glob         those whose names match a pattern; Expand only writes the names out
//	FS, GlobFS   files of an fs.FS: embedded ones, a zip archive, a folder
//	Mapped       a path whose file is mapped into memory
//	NewFile      a File for a Source of one's own
//	Pool         any number of Files of which few are open
//	ReadFull     all bytes of a range, or an error
//	Reader       the lines of a File, in order, with their offsets
//	ReaderAt     a File as an io.ReaderAt, for packages that know no context
//	Error        what went wrong, in which file, at which offset
//	FormatError  data that is not what its format prescribes
//
// # What a File shows
//
// A File has the size that it had when it was opened. What is appended later is not seen.
// If the file ends earlier now, a read of what is missing is an *Error that wraps
// ErrChanged, and never io.EOF. Contents that were replaced in place are read as they are:
// whoever must know compares Version with that of a later Stat.
//
// # Names and order
//
// Lists of files are sorted by the bytes of their names, on every machine alike, because
// the order of files is part of the order of samples.
package source
