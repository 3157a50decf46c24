// Package containerjudge finds the use of an element that a container of the C++ standard library does not have, in
// the memory of a process that failed by it: an index out of range, the element at end(), the first element of an
// empty container, an iterator whose element was freed.
//
// It starts from the access that failed: the call that gave the bad address (operator[], operator->, front), with
// its arguments, or the memory that the bad pointer was loaded from. Only if these lead to a container or an iterator
// of the program, whose layout is checked in memory, is something said. What is said is inferred: the container may
// have changed between the use and the failure.
package containerjudge
