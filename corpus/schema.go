package corpus

import (
	"context"
	"database/sql"
	"fmt"
)

// schemaVersion is the version of the tables, in PRAGMA user_version. A database of a later
// version is refused. steps converts each version to the next.
const schemaVersion = 4

// applicationID distinguishes a corpus from other databases (PRAGMA application_id).
const applicationID = 0x64676e63 // "dgnc"

// steps[i] converts version i to version i+1. Times are nanoseconds since 1970.
var steps = []string{`
CREATE TABLE entries (
	id         TEXT PRIMARY KEY,
	kind       TEXT NOT NULL,             -- recording, core
	program    TEXT NOT NULL,             -- path of the executable, '' if unknown
	build_id   TEXT NOT NULL,
	outcome    TEXT NOT NULL,             -- in words
	ended      TEXT NOT NULL,             -- SIGSEGV, exit-1, passed; '' if unknown
	likeness   TEXT NOT NULL,             -- equal for what looks alike before it is diagnosed
	culprit    TEXT NOT NULL,             -- of a recording: the directory in it to diagnose
	passed     INTEGER NOT NULL,
	failed_at  INTEGER NOT NULL,
	added_at   INTEGER NOT NULL,
	bytes      INTEGER NOT NULL,          -- on disk
	source     TEXT NOT NULL,             -- where it was added from
	dropped_at INTEGER                    -- its files are gone since, the rows are kept for the history
) STRICT;
CREATE INDEX entries_by_time ON entries(failed_at);

CREATE TABLE files (
	entry  TEXT NOT NULL REFERENCES entries(id) ON DELETE CASCADE,
	name   TEXT NOT NULL,
	size   INTEGER NOT NULL,
	sha256 TEXT NOT NULL,
	PRIMARY KEY (entry, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE labels (
	entry TEXT NOT NULL REFERENCES entries(id) ON DELETE CASCADE,
	key   TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (entry, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE diagnoses (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	entry      TEXT NOT NULL REFERENCES entries(id) ON DELETE CASCADE,
	version    TEXT NOT NULL,             -- of diagnose
	status     TEXT NOT NULL,             -- diagnosed, undiagnosed
	reason     TEXT NOT NULL,             -- why it is undiagnosed, or its missing part
	stack      TEXT NOT NULL,             -- signatures, '' without one
	cause      TEXT NOT NULL,
	kind       TEXT NOT NULL,
	proof      TEXT NOT NULL,
	summary    TEXT NOT NULL,
	started_at INTEGER NOT NULL,
	took_ns    INTEGER NOT NULL,
	cpu_ns     INTEGER NOT NULL,
	rss_bytes  INTEGER NOT NULL,
	report     BLOB,                      -- gzip of the JSON document
	UNIQUE (entry, version)
) STRICT;

CREATE TABLE signatures (
	digest TEXT PRIMARY KEY,
	lines  TEXT NOT NULL                  -- separated by line feeds
) STRICT, WITHOUT ROWID;

CREATE TABLE clusters (
	digest      TEXT PRIMARY KEY,
	reported_at INTEGER,                  -- when a night's summary had it first
	fixed_at    INTEGER,
	note        TEXT NOT NULL DEFAULT '',
	returned_at INTEGER                   -- when a summary first had it as back
) STRICT, WITHOUT ROWID;

CREATE TABLE claims (
	entry   TEXT PRIMARY KEY REFERENCES entries(id) ON DELETE CASCADE,
	owner   TEXT NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE history (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	at     INTEGER NOT NULL,
	entry  TEXT NOT NULL,                 -- or the cluster; no reference: it outlives both
	what   TEXT NOT NULL,
	detail TEXT NOT NULL
) STRICT;
CREATE INDEX history_by_entry ON history(entry);
`, `
CREATE TABLE tracked (
	tracker  TEXT NOT NULL,
	digest   TEXT NOT NULL,
	owner    TEXT NOT NULL,               -- the process that sends it now, '' for none
	issue    TEXT NOT NULL DEFAULT '',    -- '' if nothing was told yet
	url      TEXT NOT NULL DEFAULT '',
	attached INTEGER NOT NULL DEFAULT 0,
	count    INTEGER NOT NULL DEFAULT 0,  -- failures that it was told of
	last     INTEGER NOT NULL DEFAULT 0,  -- when the newest of them was
	at       INTEGER NOT NULL DEFAULT 0,  -- when it was told
	PRIMARY KEY (tracker, digest)
) STRICT, WITHOUT ROWID;
`, `
ALTER TABLE entries ADD COLUMN imported INTEGER NOT NULL DEFAULT 0; -- it came in an archive
-- Earlier versions did not note it. What was diagnosed before it was added was
-- diagnosed elsewhere.
UPDATE entries SET imported = 1 WHERE EXISTS (SELECT 1 FROM diagnoses d WHERE d.entry = entries.id AND d.started_at < entries.added_at);
`, `
ALTER TABLE diagnoses ADD COLUMN class TEXT NOT NULL DEFAULT '';    -- of the severity, '' if it is not known
ALTER TABLE diagnoses ADD COLUMN estimate TEXT NOT NULL DEFAULT '';
`}

// prepare converts a database to the schema of this version. It is atomic: if two processes
// find an empty file, one of them creates the tables.
func prepare(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	version, err := checkSchema(ctx, tx)
	if err != nil {
		return err
	}
	for ; version < schemaVersion; version++ {
		if _, err := tx.ExecContext(ctx, steps[version]); err != nil {
			return fmt.Errorf("schema %d: %w", version+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// checkSchema returns the version of a database that this package can use.
func checkSchema(ctx context.Context, db querier) (int, error) {
	var version, application, tables int
	row := db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)")
	if err := row.Scan(&version, &application, &tables); err != nil {
		return 0, err
	}
	switch {
	case version == 0 && application == 0 && tables == 0:
		return 0, nil
	case application != applicationID:
		return 0, &InputError{fmt.Errorf("%s is another program's database", databaseName)}
	case version > schemaVersion:
		return 0, &InputError{fmt.Errorf("%s was written by a later diagnose (schema %d, this one knows %d)", databaseName, version, schemaVersion)}
	}
	return version, nil
}
