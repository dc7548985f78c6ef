// Package tar reads samples from tar files, as WebDataset writes them: files that follow each
// other and have the same name up to the first point are the parts of one sample.
//
//	000017.jpg
//	000017.cls
//	000018.jpg
//	000018.cls
//
// Open reads the headers of plain tar files, and gives the samples by number. NewStream reads tar
// files from front to back, which may be compressed by gzip or zstd.
//
// # What belongs to a sample
//
// The key is the path up to the first point of the file's own name, and the rest is the
// suffix, in lower case: a/v1.5/001.Seg.png has key a/v1.5/001 and suffix seg.png.
// Options.Key takes names apart in another way. Names without a point, those that begin
// with one (._001.jpg of macOS), those of the form __name__, folders, devices and symbolic links
// are no parts. The end of a file is the end of its last sample.
//
// # Which tar files
//
// All that GNU tar, bsdtar and Python's tarfile write by default: the formats of POSIX.1-1988
// (ustar) and POSIX.1-2001 (pax), and GNU's long names and large sizes. A pax record of a size or a
// path counts more than the header. Files put together are read to the end of the last. A file
// that ends without blocks of zeros was cut off, which is an error, as are sparse files
// and hard links, whose data lies elsewhere.
package tar
