// Package program makes small programs with one bug from seeds. A program is composed of
// parts: a bug that gives a bad value or damages memory, carriers that take the value through
// other objects, an end by which the program fails, and innocent work around them. Each
// program has a twin that differs only in the bug.
//
// A part is a file in parts. Its header has lines "key: value" and "let NAME = a | b" or
// "let NAME = 3..9", of which the seed takes one; then come the sections "-- types --",
// "-- globals --", "-- functions --", "-- main --" and "-- clean --", in C that is C++ as
// well. In these
//
//	@{bug@|fixed@}  is the text of the bug, and that of the twin
//	//@root         at the end of a line marks a line of the bug
//	//@seen         marks a line where a sanitizer may see the bug first
//	$NAME           is the choice for NAME; $IN, $OUT and $T are the value that a
//	                part takes, the value that it gives, and the type of both
//	name$$          is a name of the part's own
//	ALLOC{T|n}      allocates n elements, FREE{p} frees them, in C or as C++ does
//	#choose NAME, #case A, #case B, #end  are lines of which the seed takes one case
package program
