// Package collect takes the cores of a host's crashed programs: from the kernel, which gives a core to
// a handler's standard input (core(5), "Piping core dumps to a program"), or from the directory of
// systemd-coredump. They are kept in a spool until they are sent.
//
// The crashed process is held by the kernel while its core is read. Its memory, files and environment
// are read through /proc, in its own mount namespace. It may be hostile.
package collect
