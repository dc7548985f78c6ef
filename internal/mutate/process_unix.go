//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup lets kill reach the processes that a test starts.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func kill(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
