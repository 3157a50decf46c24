// Package staticscan reads the code near a failure and says which memory it
// works on.
//
// Run lists the variables with static storage that the failing code touches,
// and the heap words that it reaches through them: the suspects of later
// stages. Origin goes back from the operand that failed to where its value
// came from, as far as the code and the dead process can tell.
//
// Both rest on a forward data flow over a function's basic blocks, which
// follows the addresses of static data, of the stack frame, and of what
// pointers in static data lead to. Two assumptions are made, as compilers'
// output mostly keeps them: a store through an unknown pointer does not change
// a spilled register, and a callee keeps the registers that the System V ABI
// (AMD64 supplement, 3.2.1) says it keeps.
//
// Nothing is written to the process and nothing is run.
package staticscan
