// Package checkpoint copies a stopped process of a replay, so that the replay can be continued from there, any number of times. The
// copy is a fork, which has one thread and waits; a process that continues is forked from it, and gets the other threads. Fork makes a copy
// that continues by itself, confined, outside of the recording. Save writes a copy to a file, and Saved.Load makes the same from it, for another
// process of the tool.
package checkpoint
