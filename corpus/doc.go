// Package corpus keeps failures: recordings and cores in a directory, and beside them
// a database with what is known of them.
//
//	DIR/corpus.db     the database (schema.go)
//	DIR/entries/ID/   one failure: the recording's files, or the core
//	DIR/incoming/     what is being added, of processes that are at it
//	DIR/owners/       one file a process, locked while it lives
//
// An entry is copied to incoming, made safe there, and moved to its place by one
// rename inside of the transaction that writes its rows. So whatever interrupts an
// addition, the entry is there whole or not at all: a directory without rows is left
// over, and the next writer removes it. An entry's name is the digest of its files,
// so that what is added twice is there once.
//
// A process that works on something says so under a name of its own, whose file in
// owners it keeps locked. The kernel lets go of the lock when the process ends,
// however it ends, and others take over at once.
//
// What is added may come from somebody else: symbolic links, devices and names that
// lead out of a directory are refused, and sizes are bounded before anything is
// written.
package corpus
