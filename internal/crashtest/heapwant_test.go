package crashtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/evidence"
)

func TestParseHeap(t *testing.T) {
	const text = `// A bug.
// OPTIONS: fill_bytes=64:stacks=4
p = malloc(5); // @made
make();        /* @asked */
// WANT: heap-overflow:@made..@end
// HEAP: heap-overflow object=5 offset=6 bytes=2 text=ab reaches beyond=8 api=new[] inferred alloc:@made<@asked(worker) call:nowhere
// HEAP: double-free object=0 at=0 alloc:@LINE-4 free:@LINE+1..+2(ended) call:@asked says=twice
// HEAP: invalid-free addr=0x12 call:@end optional
} // @end
`
	f, err := parseFixture("/x/some_bug.cc", text)
	if err != nil {
		t.Fatal(err)
	}
	at := func(first, last int) Lines { return Lines{"some_bug.cc", first, last} }
	call := func(thread string, frames ...Lines) *WantCall { return &WantCall{frames, thread} }
	eight, zero, address := uint64(8), int64(0), evidence.Addr(0x12)
	want := []HeapWant{{
		Kind: evidence.FindingHeapOverflow, Proof: evidence.Inferred,
		Object: &WantObject{Size: 5, API: "operator new[]", Beyond: &eight, Allocated: call("worker", at(3, 3), at(4, 4))},
		Damage: &WantDamage{Offset: 6, Bytes: 2, Hex: "6162", Reaches: true},
		Call:   call(""),
	}, {
		Kind: evidence.FindingDoubleFree, Proof: evidence.FromCore, At: &zero, Says: "twice",
		Object: &WantObject{API: "malloc", Allocated: call("", at(3, 3)), Free: call("ended", at(8, 9))},
		Call:   call("", at(4, 4)),
	}, {
		Kind: evidence.FindingInvalidFree, Proof: evidence.FromCore, Addr: &address, Optional: true,
		Call: call("", at(9, 9)),
	}}
	if diff := cmp.Diff(want, f.Heap); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f.Options != "fill_bytes=64:stacks=4" || f.Want.Line != 3 || f.Want.LastLine != 9 {
		t.Errorf("options %q, %+v", f.Options, f.Want)
	}
}

func TestParseHeapErrors(t *testing.T) {
	const head = "x // @made\n// WANT: trap:@made\n"
	const overflow = head + "// HEAP: heap-overflow object=1 offset=1 bytes=1 alloc:@made"
	if _, err := parseFixture("x.c", overflow); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"unknown kind":        head + "// HEAP: bad-luck object=1 alloc:@made",
		"unknown field":       overflow + " colour=red",
		"unknown call":        overflow + " sold:@made",
		"unknown word":        overflow + " reach",
		"a field twice":       overflow + " bytes=2",
		"unknown interface":   overflow + " api=mmap",
		"no number":           strings.Replace(overflow, "object=1", "object=one", 1),
		"no place":            overflow + " call:here",
		"unknown mark":        overflow + " call:@unmarked",
		"a mark twice":        overflow + "\ny // @made\n",
		"unused mark":         overflow + "\ny // @unused\n",
		"range backwards":     overflow + " call:@LINE..-1",
		"two spaces":          overflow + "  reaches",
		"hex and text":        overflow + " hex=41 text=A",
		"overflow, no object": head + "// HEAP: heap-overflow offset=1 bytes=1",
		"overflow, no bytes":  head + "// HEAP: heap-overflow object=1 offset=1 alloc:@made",
		"overflow, no alloc":  head + "// HEAP: heap-overflow object=1 offset=1 bytes=1",
		"overflow, no damage": head + "// HEAP: heap-overflow object=1 alloc:@made",
		"use, no free":        head + "// HEAP: use-after-free object=1 alloc:@made",
		"double, no free":     head + "// HEAP: double-free object=1 alloc:@made call:@made",
		"double, no call":     head + "// HEAP: double-free object=1 alloc:@made free:@made",
		"invalid, no call":    head + "// HEAP: invalid-free says=stack",
		"middle, no object":   head + "// HEAP: invalid-free at=3 call:@made",
		"nothing and a want":  head + "// HEAP: nothing",
		"nothing, something":  "x // @made\n// HEAP: nothing\n// HEAP: heap-object object=1 alloc:@made",
		"want of a library":   "// PLUGIN: none.c\n// WANT: trap:@LINE\n",
	} {
		if f, err := parseFixture("x.c", text); err == nil {
			t.Errorf("%s: no error, but %+v", name, f.Heap)
		}
	}
}

// TestHeapTable: what the table must have at least.
func TestHeapTable(t *testing.T) {
	list := HeapFixtures(t)
	if len(list) < 50 {
		t.Errorf("%d programs", len(list))
	}
	kinds, languages, sizes := map[evidence.FindingKind]int{}, map[string]int{}, map[uint64]bool{}
	for _, f := range list {
		languages[f.Language()]++
		for _, w := range f.Heap {
			kinds[w.Kind]++
			if w.Object != nil {
				sizes[w.Object.Size] = true
			}
		}
	}
	for kind := range heapParts {
		if kinds[kind] < 2 {
			t.Errorf("%d programs with %s", kinds[kind], kind)
		}
	}
	for _, language := range []string{"c", "c++", "rust"} {
		if languages[language] < 3 {
			t.Errorf("%d programs in %s", languages[language], language)
		}
	}
	for _, size := range []uint64{0, 1, 7, 8, 16, 24, 40, 100, 128, 255, 1000, 4096, 10000, 100000, 200000} {
		if !sizes[size] {
			t.Errorf("no object of %d bytes", size)
		}
	}
}
