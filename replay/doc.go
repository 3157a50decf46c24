// Package replay runs a recording again, one thread at a time, to the same end. The process itself
// does the replay (agent/src/engine/engine.h). This package starts it and passes it the log. It
// finds places that no event names: those of signals between two events, and of each thread at the
// end. It bounds the time, and compares the end with the recorded one. A Request says what a
// replay does and observes.
package replay
