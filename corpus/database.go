//go:build !nocorpus

package corpus

import (
	"errors"

	"modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// hasDatabase: a corpus can be opened.
const hasDatabase = true

// databaseDamaged reports whether an error of the driver says that the file is no database, or a
// damaged one.
func databaseDamaged(err error) bool {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return false
	}
	const primary = 0xff // of an extended result code
	code := failed.Code()
	return code == sqlite3.SQLITE_IOERR_SHORT_READ || code&primary == sqlite3.SQLITE_NOTADB || code&primary == sqlite3.SQLITE_CORRUPT
}
