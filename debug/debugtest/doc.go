// Package debugtest has recordings of small programs, served to debuggers, for the tests of package debug's servers.
package debugtest
