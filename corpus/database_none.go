//go:build nocorpus

package corpus

// hasDatabase: to compile the database takes a quarter of the time of a first build, and the
// demo needs no corpus.
const hasDatabase = false

func databaseDamaged(error) bool { return false }
