package main

import (
	"fmt"
	"runtime/debug"
)

type node struct {
	id   int
	next *node
	name string
}

//go:noinline
func walk(n *node, k int) int {
	if k == 0 {
		n.next.id = 4
		return 0
	}
	return walk(n, k-1) + len(n.name)
}
func main() {
	debug.SetTraceback("crash")
	go func() { select {} }()
	fmt.Println(walk(&node{name: "x"}, 3))
}
