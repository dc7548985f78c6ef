// Package shardfiles makes streams of files whose records are read from front to back.
package shardfiles
