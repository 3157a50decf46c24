// Package signature says which failures are the same: by the stack that failed, and
// by the cause that replays found.
//
// A signature is a digest of a few lines of text, which are kept with it for
// people to see. The lines name facts that do not change from one run to the next, nor
// from one build to the next: functions, and the text of source lines in place of
// their numbers; never an address, a thread or a path.
package signature
