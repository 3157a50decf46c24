package unwind

import (
	"slices"

	"diagnose/evidence"
)

// Bounds of one search for the tail calls between two functions.
const (
	maxChainFunctions = 256
	maxChainJumps     = 4096
)

// jump is a tail call: after is the address after the instruction, to the entry of the
// function that it calls.
type jump struct {
	after, to evidence.Addr
}

// edge is a jump with the entry of the function that makes it.
type edge struct {
	jump
	from evidence.Addr
}

// chain is what all sequences of tail calls from one function to another have in
// common: the calls that they begin with and those that they end with, both in the
// order of time. It is whole if there is only one sequence; first then has it. Otherwise a
// call that all begin and end with is in last.
type chain struct {
	first, last []jump
	whole       bool
}

// findChain returns what the sequences from the function start to the function end have in common.
// leaves tells all tail calls of a function, or that they are not known. ok is false if
// there is no sequence, or some function's calls are not known: those might be other ways.
//
// gdb compares the sequences one by one (gdb/dwarf2/loc.c, call_site_find_chain_1),
// which takes time exponential in their calls. A call begins all of them if it is the only one
// of its function that leads to end, and the calls before it begin all of them; it ends
// all of them if it is the only one that leads to its function.
func findChain(start, end evidence.Addr, leaves func(evidence.Addr) ([]jump, bool)) (c chain, ok bool) {
	edges, ok := edgesBetween(start, end, leaves)
	if !ok {
		return chain{}, false
	}
	from, to := map[evidence.Addr][]edge{}, map[evidence.Addr][]edge{}
	for _, e := range edges {
		from[e.from] = append(from[e.from], e)
		to[e.to] = append(to[e.to], e)
	}
	at := start
	for at != end && len(from[at]) == 1 {
		c.first = append(c.first, from[at][0].jump)
		at = from[at][0].to
	}
	if at == end {
		c.whole = true
		return c, len(c.first) > 0
	}
	for at = end; at != start && len(to[at]) == 1; at = to[at][0].from {
		c.last = append([]jump{to[at][0].jump}, c.last...)
	}
	// A loop may be entered and left by the same call.
	c.first = slices.DeleteFunc(c.first, func(j jump) bool { return slices.Contains(c.last, j) })
	return c, len(c.first)+len(c.last) > 0
}

// edgesBetween returns the jumps that are part of some sequence from start to end. What
// the function at end calls is not of interest: a sequence ends where it first gets there.
func edgesBetween(start, end evidence.Addr, leaves func(evidence.Addr) ([]jump, bool)) ([]edge, bool) {
	var all []edge
	seen := map[evidence.Addr]bool{start: true, end: true}
	for next := []evidence.Addr{start}; len(next) > 0; next = next[1:] {
		jumps, ok := leaves(next[0])
		if !ok || len(all)+len(jumps) > maxChainJumps || len(seen) > maxChainFunctions {
			return nil, false
		}
		for _, j := range jumps {
			all = append(all, edge{jump: j, from: next[0]})
			if !seen[j.to] {
				seen[j.to] = true
				next = append(next, j.to)
			}
		}
	}
	leading := map[evidence.Addr]bool{end: true} // functions from which end is reached
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if leading[e.to] && !leading[e.from] {
				leading[e.from], grown = true, true
			}
		}
	}
	var useful []edge
	for _, e := range all {
		if leading[e.to] {
			useful = append(useful, e)
		}
	}
	return useful, true
}
