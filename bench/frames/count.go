package main

import (
	"fmt"
	"strings"
)

// tailCall is the kind of a frame that was rebuilt.
const tailCall = "tail-call"

// count sums comparisons up. besides counts tail calls that gdb does not tell.
type count struct{ stacks, sameStacks, frames, sameFrames, tails, told, besides int }

func (c *count) add(o count) {
	c.stacks += o.stacks
	c.sameStacks += o.sameStacks
	c.frames += o.frames
	c.sameFrames += o.sameFrames
	c.tails += o.tails
	c.told += o.told
	c.besides += o.besides
}

func (c *count) print(name string) {
	fmt.Printf("| %s | %d | %d | %d | %d | %d | %d | %d |\n", name, c.stacks, c.sameStacks, c.frames, c.sameFrames, c.tails, c.told, c.besides)
}

// compareStack aligns two stacks by skipping tail calls that one of them lacks. The note says where they
// first differ; it is empty for equal ones.
func compareStack(ours, theirs []frame) (c count, note string) {
	c.stacks = 1
	differ := func(i int, text string) {
		if note == "" {
			note = fmt.Sprintf("frame %d: %s", i, text)
		}
	}
	i := 0
	for j := range theirs {
		t := &theirs[j]
		c.frames++
		if t.Kind == tailCall {
			c.tails++
		}
		for i < len(ours) && ours[i].Kind == tailCall && !same(&ours[i], t) && t.Kind != tailCall {
			c.besides++
			differ(j, "gdb lacks the tail call "+ours[i].Name)
			i++
		}
		switch {
		case i < len(ours) && same(&ours[i], t):
			c.sameFrames++
			if t.Kind == tailCall {
				c.told++
			}
			i++
		case t.Kind == tailCall:
			differ(j, "the tail call "+t.Name+" is missing")
		case i < len(ours):
			differ(j, fmt.Sprintf("%v, gdb has %v", ours[i], *t))
			i++
		default:
			differ(j, fmt.Sprintf("gdb has %v", *t))
		}
	}
	if i < len(ours) && len(theirs) < mostFrames && len(ours) < mostFrames {
		differ(len(theirs), fmt.Sprintf("gdb lacks %v", ours[i]))
	}
	if note == "" {
		c.sameStacks = 1
	}
	return c, note
}

func same(a, b *frame) bool {
	return a.Kind == b.Kind && (a.PC == b.PC || a.Kind == "inlined") && (a.Line == b.Line) && sameName(a, b)
}

// sameName compares names without parameters and versions, which the two write differently. gdb
// calls code without a symbol by none.
func sameName(a, b *frame) bool {
	if a.Linkage != "" && a.Linkage == b.Linkage || a.Kind == "signal" {
		return true
	}
	return plain(a.Name) == plain(b.Name)
}

func plain(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.IndexByte(name, '('); i > 0 {
		name = name[:i]
	}
	return name
}
