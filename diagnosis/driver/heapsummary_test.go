package driver_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// heapProgram leaves a heap whose every object is known: 300 of 40 bytes that
// are made at two depths by one stack of calls, 3 of 1,000 bytes of which 2 are
// freed, one of 500,000 bytes, and an overflow of one byte.
const heapProgram = `
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char text[32]; };
static struct node *volatile list;
static char *volatile kept;
__attribute__((noinline)) static void *checked(size_t n)
{
	void *p = malloc(n);
	if (!p)
		abort();
	return p;
}
__attribute__((noinline)) static void push(int n)
{
	volatile char room[n];
	struct node *x = checked(sizeof *x);
	room[0] = 0;
	x->next = list;
	list = x;
}
int main(void)
{
	for (int i = 0; i < 300; i++)
		push(i % 2 ? 16 : 4000);
	for (int i = 0; i < 3; i++) {
		char *p = calloc(1, 1000);
		if (i < 2)
			free(p);
		else
			kept = p;
	}
	kept = malloc(500000);
	kept = malloc(20);
	memcpy(kept, "just as long as it is", 21);
	abort();
}
`

func heapCore(t *testing.T) string {
	t.Helper()
	exe := crashtest.Compile(t, crashtest.Program{Source: "heap.c", Text: heapProgram, Flags: []string{"-O0"}})
	return crashtest.Core(t, exe, crashtest.Run{Env: underAgent(t, "")})
}

// siteIn returns the site whose innermost frames in the program are these functions.
func siteIn(t *testing.T, h *evidence.Heap, functions ...string) *evidence.HeapSite {
	t.Helper()
	var found *evidence.HeapSite
	for i := range h.Sites {
		frames := h.Sites[i].Allocated.Stack.Frames
		match := len(frames) >= len(functions)
		for j := range functions {
			match = match && frames[j].Site.Function == functions[j]
		}
		if match && (found == nil || functions[0] != "main") {
			if found != nil {
				t.Errorf("%v has two sites", functions)
			}
			found = &h.Sites[i]
		}
	}
	if found == nil {
		t.Fatalf("no site %v in %+v", functions, h.Sites)
	}
	return found
}

// checkSums: the sites add up to the total, and those of the program are as the program made them.
// Allocations of the C library and the agent count as theirs.
func checkSums(t *testing.T, h *evidence.Heap) {
	t.Helper()
	var own, others evidence.HeapSite
	sites := 0
	for i := range h.Sites {
		x, sum := &h.Sites[i], &others
		if x.Allocated.Site != nil {
			sites++
			sum = &own
		}
		sum.LiveObjects += x.LiveObjects
		sum.LiveBytes += x.LiveBytes
		sum.Quarantined += x.Quarantined
		sum.QuarantinedBytes += x.QuarantinedBytes
	}
	if own.LiveObjects != 303 || own.LiveBytes != 300*40+1000+500000+20 || own.Quarantined != 2 || own.QuarantinedBytes != 2000 || sites != 4 {
		t.Errorf("%d sites of the program's: %+v", sites, own)
	}
	if h.LiveObjects != own.LiveObjects+others.LiveObjects || h.LiveBytes != own.LiveBytes+others.LiveBytes ||
		h.Quarantined != own.Quarantined+others.Quarantined || h.QuarantinedBytes != own.QuarantinedBytes+others.QuarantinedBytes {
		t.Errorf("the sum is %+v, its parts %+v and %+v", h, own, others)
	}
}

func TestHeapSummary(t *testing.T) {
	core := heapCore(t)
	h, err := driver.Heap(context.Background(), driver.Request{Core: core}, driver.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
	checkSums(t, h)
	if h.Threads != 1 || h.Errors != 0 || h.Damaged != 1 || h.Elided != 0 || len(h.Findings) != 1 {
		t.Errorf("%d threads, %d errors, %d damaged, %d findings, %d elided", h.Threads, h.Errors, h.Damaged, len(h.Findings), h.Elided)
	}
	if largest := &h.Sites[0]; largest.LiveBytes != 500000 || largest.LiveObjects != 1 || largest.Largest != 500000 {
		t.Errorf("the first site is %+v", largest)
	}
	nodes := siteIn(t, h, "checked", "push", "main")
	if nodes.LiveObjects != 300 || nodes.LiveBytes != 300*40 || nodes.Largest != 40 || nodes.Quarantined != 0 {
		t.Errorf("the nodes are %+v", nodes)
	}
	f := &h.Findings[0]
	if by := f.Object.Allocated.Thread; by == nil || by.Ref == nil || by.Ref.Start != "main" {
		t.Errorf("allocated by %+v", by)
	}
	if f.Kind != evidence.FindingHeapOverflow || f.Object.Size != 20 || f.Damage.Offset != 20 || f.Damage.Overwritten != 1 || f.Damage.Bytes != "73" ||
		f.Site == nil || f.Site.Function != "main" {
		t.Errorf("finding %+v, damage %+v", f, f.Damage)
	}
	few, err := driver.Heap(context.Background(), driver.Request{Core: core}, driver.HeapOptions{Sites: 1})
	if err != nil || len(few.Sites) != 1 || few.Elided != len(h.Sites)-1 {
		t.Errorf("one site was asked for: %+v, %v", few, err)
	}
}

// If the agent serves the heap, glibc's lists of free blocks are not searched, and a failure that
// is not related to the heap is reported as without the agent.
func TestCrashUnderAgent(t *testing.T) {
	c := crash(t, driver.Request{Core: heapCore(t)})
	if c.Failure.Kind != evidence.Abort || !strings.Contains(c.Failure.Sentence, "abort in main") {
		t.Errorf("%s: %s", c.Failure.Kind, c.Failure.Sentence)
	}
	if len(c.Findings) != 1 || c.Findings[0].Kind != evidence.FindingHeapOverflow {
		t.Errorf("findings %+v", c.Findings)
	}
}

// TestHeapWithoutAgent: a program with neither the agent nor the C library has no heap to sum up.
func TestHeapWithoutAgent(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "bare.c", Text: "void _start(void) { __builtin_trap(); }\n",
		Flags: []string{"-nostdlib", "-static", "-fno-stack-protector"}})
	h, err := driver.Heap(context.Background(), driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{})}, driver.HeapOptions{})
	var input *driver.InputError
	if h != nil || !errors.As(err, &input) || !strings.Contains(err.Error(), "diagnose run --") {
		t.Errorf("%v, %v", h, err)
	}
}

// The part of a cut core that exists is summarized, and the report says that it is not all.
func TestHeapOfCutCore(t *testing.T) {
	crashtest.NeedKernelCores(t)
	data := read(t, heapCore(t))
	path := filepath.Join(t.TempDir(), "core")
	partial := 0
	for part := range 20 {
		write(t, path, data[:len(data)*(part+1)/21])
		h, err := driver.Heap(context.Background(), driver.Request{Core: path}, driver.HeapOptions{})
		var input *driver.InputError
		if err != nil && !errors.As(err, &input) {
			t.Errorf("%d of 21 parts: %v", part+1, err)
		}
		if err != nil {
			continue
		}
		partial++
		if !slices.ContainsFunc(h.Limits, func(l evidence.Limit) bool { return l.Severe && strings.Contains(l.Text, "truncated") }) {
			t.Errorf("%d of 21 parts: no severe limit tells of the cut: %+v", part+1, h.Limits)
		}
		if h.LiveObjects > 400 {
			t.Errorf("%d objects", h.LiveObjects)
		}
	}
	if partial < 5 {
		t.Errorf("only %d cut cores gave a summary", partial)
	}
}
