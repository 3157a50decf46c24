// Package replay runs a recording again, one thread at a time, to the same
// end. The process itself does the replay (agent/src/engine.h); this package
// starts it, tells it what the log says, places what has no event of its own
// (signals that came between two events, where each thread stood at the end),
// watches that it gets on, and compares what it came to with the recorded end.
package replay
