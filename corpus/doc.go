// Package corpus stores failures: recordings and cores in a directory, and a database with
// their data and diagnoses.
//
//	DIR/corpus.db     the database (schema.go)
//	DIR/entries/ID/   one failure: the recording's files, or the core
//	DIR/incoming/     entries that are being added
//	DIR/owners/       one file a process, locked while it lives
//
// An entry is copied to incoming, synced there, and moved to its place by one rename inside of
// the transaction that writes its rows. So if an addition is interrupted, the entry exists
// completely or not at all: the next writer removes a directory without rows. An entry's name
// is the digest of its files, so an entry that is added twice exists once.
//
// A process that works on an entry records that under its own name, and locks the file of that
// name in owners. The kernel releases the lock when the process ends, however it ends, and
// others can take over at once.
//
// An added entry may come from a stranger: symbolic links, devices and names that lead out of a
// directory are refused, and sizes are checked before anything is written.
package corpus
