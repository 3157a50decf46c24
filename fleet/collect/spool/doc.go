// Package spool keeps collected cores on a disk until they are sent, within limits of rate and
// size.
//
//	entries/ID/       a collected core (package collected)
//	objects/SHA256    executables and libraries, once each: hard links of those of the entries
//	incoming/ID/      an entry that is being written, locked by its writer
//	state.json        rates and counters
//	lock, slots/      locks
//
// An entry is written in incoming, flushed to the disk and renamed: whoever is killed leaves an entry
// whole or not at all, and the next one removes the rest.
package spool
