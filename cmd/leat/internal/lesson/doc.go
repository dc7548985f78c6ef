// Package lesson runs the classic lesson of hiding copies behind compute on a
// modelled card: the same batches with a host that waits for each call, in one
// stream without waiting, and in several streams. Two more lessons are given in the
// same way: a step of short kernels, launched and replayed as a graph, and batches
// dealt to unequal cards.
//
// Everything that it tells is read off what ran: the card's engines report each
// operation's start and end. A formula stands beside it only as the expectation.
package lesson
