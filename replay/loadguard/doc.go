// Package loadguard decides what the process of a replay may do before the recorder runs in it:
// only recorded files are executed, and no system call has an effect beyond the process.
package loadguard
