// Package limit runs programs that may do anything: for a limited time, with limited memory
// and output, in a directory of their own.
package limit
