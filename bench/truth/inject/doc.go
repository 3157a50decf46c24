// Package inject puts one bug into a C or C++ source file.
//
// An operator looks for the places in a file where a bug of one kind is possible: a bound
// that can be off by one, a check that can be removed, a lock that can be left out. Each
// place is a Mutation, which says in data what the right answers of a diagnosis are: the
// line that was changed or, for a removal, the lines of the same block that name the object
// or the lock. Which mutations compile and fail is for the caller to find out.
//
// An edit never adds or removes a line, so a line has the same number in the original and
// in the mutant.
package inject
