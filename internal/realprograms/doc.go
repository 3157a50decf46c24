// Package realprograms holds no code, only tests: programs of Debian's
// packages, and small ones that live as unusual ones do (under seccomp, under
// memory limits, with their own signal handlers), do their usual work plainly
// and then with the agent preloaded. Output, files and exit status have to be
// the same byte for byte, and the agent must not accuse anybody.
//
// DIAGNOSE_SOAK=1 makes the work long: a minute for each server, whole parts
// of Python's own test suite.
package realprograms
