// Package expression evaluates expressions of C on a stopped process, with the types of its debug
// information: names, -> . [] * &, arithmetic, comparisons, && || ?:, casts, sizeof and literals.
// Nothing is assigned and nothing is called, so an evaluation changes nothing.
//
// The rules are those of C11, section 6.5, with these differences: == and != between a string
// literal and characters of the program compare the text; references of C++ stand for what they
// refer to; a member of the object that a method of C++ works on may be named alone.
//
// An operand that cannot be read is an error, never a zero. The text is untrusted: its length, its
// nesting and so the reads that it leads to are bounded.
package expression
