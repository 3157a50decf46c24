// Package cases holds no code, only tests: each program of testdata/cases has shown a shortfall
// of the whole tool once. The file cases.json in that folder says how each is built and run, and
// what the report's typed fields must say; the test reads no sentence.
//
// A case that the tool does not get right yet is known: its entry says why, and what the tool
// makes of it at worst. It is run and counted all the same. The test fails when the result is
// worse than that, and when it is right, so that the list of known cases can only shrink. A
// wrong cause that is called proved fails the test always.
//
// A failure that depends on the order of threads is recorded again and again until it happens,
// at most as often as the entry says.
//
// DIAGNOSE_MATRIX=full takes all cases in all variants ('make cases'); otherwise the test takes
// those that the entry marks as quick, in their first variant. DIAGNOSE_CASES names a file to
// write the table of results to.
package cases
