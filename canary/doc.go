// Package canary judges overwritten guards in the memory of a dead or stopped
// process: pure functions of a memory image, the frames of a stack, and the
// code of their functions.
//
// The stack protector of gcc and clang copies the word at fs:0x28 into each
// protected frame between its arrays and its return address, and compares it
// before the function returns. So a frame whose copy differs was overrun,
// whether or not the function has detected it (__stack_chk_fail).
//
// A guard is judged only if it is certain where its slot is and that it was
// filled. Otherwise there is no finding.
package canary
