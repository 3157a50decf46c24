// Package heapjudge judges a failure by the agent's heap. It combines the overwritten
// guards that package canary finds, the writes to freed memory that package quarantine
// finds, and the errors that the agent recorded while the program ran. It reports which
// object a failing pointer names, which misuse ended the process, which damage is
// related to the failure, and what the memory is used for.
//
// An Explanation is about one failure, a Summary about a whole heap. Both read a memory
// image and never run code of the program.
package heapjudge
