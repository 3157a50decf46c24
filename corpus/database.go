//go:build !nocorpus

package corpus

import _ "modernc.org/sqlite" // the driver "sqlite"

// hasDatabase: a corpus can be opened.
const hasDatabase = true
