// Package images reads folders of pictures in which each folder is a class:
//
//	train/cat/1.jpg
//	train/cat/2.jpg
//	train/dog/1.png
//
// Open makes a dataset of one with the fields "image", uint8 of height, width and 3, and
// "label", int32. Every picture has the same size there: a part of it is chosen by a Crop,
// and scaled.
//
//	Open, OpenFS     a folder of the operating system, or of an fs.FS
//	Dataset          its pictures by number; Plan says what was found and what was left out
//	Drawer           from an encoded picture to a row, for pictures that lie elsewhere: in a
//	                 tar file, a table or a record
//	Crop             Whole, Center, Random
//	Decoder          where a faster one is plugged in; Standard is the default
//
// # Formats
//
// JPEG, PNG and GIF are decoded by the standard library, and WebP by golang.org/x/image.
// Which one a file is shows its first bytes, whatever its name says. Of a GIF it is the
// first picture, on black. An alpha channel is left out, as Pillow's convert("RGB") does: the
// colour counts that is stored. 16-bit channels lose their low byte. Colour profiles are not
// looked at. What these decoders don't read is an error, never a picture: JPEGs of 12 bits,
// lossless or arithmetic-coded ones, and files that are cut off.
//
// A JPEG whose colour has half the resolution comes out without interpolation of the colour,
// which libjpeg does: beside strong edges of colour the two differ.
package images
