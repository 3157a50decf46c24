// Package raced reads the marks of programs with a bug of their threads, and judges diagnoses of
// them. A line that ends with "// BUG" is a right answer. "// NOT: NAME" in the comment at the top names
// a variable that has no part in the bug: a cause that is about it is wrong, even if it names such a line.
package raced
