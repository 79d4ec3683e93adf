//go:build !windows

package demo

import "syscall"

var endings = []ending{{"kill -9", syscall.SIGKILL}, {"kill -STOP", syscall.SIGSTOP}}
