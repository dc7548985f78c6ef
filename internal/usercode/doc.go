// Package usercode calls code of the user's, which may panic, end its goroutine or never
// return.
package usercode
