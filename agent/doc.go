// Package agent is the runtime that lives in the target (src), and the reader
// of what it leaves in memory.
//
// The agent writes facts at fixed places of its own address range; this
// package reads them from any memory image: a core, a stopped process, a
// replay. It says what objects there are, live and freed, who allocated and
// freed them, and what the agent itself found. Whether a guard or a fill is still
// whole is for the packages canary and quarantine to judge.
//
// The memory may be shaped by an attacker. Every count and address is compared
// with the windows that hold it, no allocation exceeds a chunk, lists are
// bounded by their storage, and what cannot be read is an error or counted,
// never taken for zeros.
package agent
