// Package pyframes reads the frames of Python code of a dead or stopped CPython process, of versions 3.11 to 3.13. The interpreter keeps
// them in memory; nothing of the process is executed.
package pyframes
