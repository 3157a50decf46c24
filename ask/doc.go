// Package ask answers fixed questions about a recording by replays: the writes of a variable, its values over time, the calls of a
// function, the times at which a line was executed, the deeds of a thread, the threads that held a lock.
//
// An answer says what it covers. That nothing wrote a variable follows only from one that is complete.
package ask
