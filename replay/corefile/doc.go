// Package corefile writes ELF cores of stopped processes, as the kernel would, and finds the
// parts of their memory that were written.
package corefile
