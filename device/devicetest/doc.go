// Package devicetest holds what every device driver is tested with.
//
// Run is the conformance suite: the promises of package driver, checked through
// package device on whatever device it is given. Tap is a wrapper around a driver
// that counts calls and, on request, swallows, fails or delays the k-th of them;
// tests of protocols built on streams and events use it to prove that dropping
// any one Wait or Record is noticed.
package devicetest
