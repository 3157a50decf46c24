// Package mi drives gdb by its machine interface ("The GDB/MI Interface" in gdb's manual).
package mi
