// Package film makes frames on the spot of a few photographs that come with the Go
// module golang.org/x/image: toy gophers on a sofa, a rose, and a gopher seen from
// close by.
//
// Each photograph is scaled to a little more than a frame and tinted, once, in
// several ways. A frame is a window into one of these pictures, which moves from
// frame to frame, so making one costs no more than copying it. A row of small
// squares in the corner tells its number, and so no two frames are equal.
package film
