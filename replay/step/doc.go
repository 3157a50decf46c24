// Package step executes parts of a replay one instruction at a time and reports the memory that
// they access.
package step
