// Package hold has a lock and a once for code that waits while it holds them: under the
// virtual time of package testing/synctest a wait for a mutex would hold up what the
// holder itself waits for, and a wait for a channel does not. An Alarm ends a wait that
// may come again and again.
package hold
