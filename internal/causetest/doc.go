// Package causetest builds, runs and records the programs of testdata/cause, each
// of which has one bug, for the tests of packages that find causes.
//
// A program is one source file, with a twin that lacks the bug (-DFIXED, in Rust
// --cfg fixed). Its comments have the expected findings; a value
// with spaces is quoted:
//
//	// CAUSE kind=K variable=V pattern=P missing=L   what the first cause must say
//	// FAILS signal=SIGABRT says="..."                how the failing run ends: a signal or exit=N,
//	//                                                and what it writes or the heap finds
//	// RUNS fail: 20 1                                arguments of a failing run; of each kind ...
//	// RUNS pass: 20 60                               ... there may be several, which are used in turn
//	// INPUT fail: a line                             of the standard input; "pass:", or both with ":"
//	// FILE pass: a line                              of the file whose path is {file} in RUNS
//	// FLAGS: -fstack-protector-strong                for the compiler, besides -g and the level
//	// LEVELS: O0                                     the only ones that it has its bug in
//	// SHORT: O2                               the levels that tests take when not all are wanted, if the
//	//                                         name is not to choose
//	// COMPILERS: gcc clang                           if not gcc alone
//	// SEARCH: why                                    no recording orders its accesses
//
// Alternatives in kind, variable and pattern are separated by "|", the best one
// first; an empty pattern is none. The variables of a pair are separated by ",".
// A variable is a name as the reports have it, in which * stands for anything and
// @OBJECT for the line that bears the mark OBJECT.
//
// Marks at the ends of lines, after their code:
//
//	// BUG        the line that the cause is to name
//	// BUG 1 3    the line makes the first and the third access of the pattern, of
//	//            which the last may not come any more if the failure is before it
//	// HOP 2      the value comes by here, the earliest place being 1
//	// OBJECT     the object is allocated here
//
// The first access is what the cause is to name unless a line is marked BUG alone;
// the others are right as well. So are the lines with numbers where there is no
// pattern.
//
// The failing and the passing run execute the same code. They differ in
// delays, lengths or values from outside.
//
// DIAGNOSE_KEEP=1 leaves programs and recordings where they are when a test fails.
package causetest
