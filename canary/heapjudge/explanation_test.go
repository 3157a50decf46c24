package heapjudge

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// scene is a made-up process whose heap has objects of 40 bytes in slots of
// 48, and a large one with a guard page. Thread 1 still runs, thread 2 ended.
type scene struct {
	*agenttest.Heap
	// live and freed are neighbours, large is 100,000 bytes.
	first, live, freed, last, large evidence.Addr
}

const largeSize = 100000 // so that 16 bytes of canary are left before the guard page

func newScene() *scene {
	s := &scene{Heap: agenttest.New()}
	made := agent.Call{Site: s.Site(0x401010, 0x401020), Thread: s.Thread(100, false)}
	gone := agent.Call{Site: s.Site(0x402010), Thread: s.Thread(101, true)}
	slot := s.Small(48, 8)
	s.first = s.Alloc(slot, 40, made, agent.APIMalloc)
	s.live = s.Alloc(slot+48, 40, made, agent.APIMalloc)
	s.freed = s.Alloc(slot+2*48, 40, made, agent.APINew)
	s.last = s.Alloc(slot+3*48, 33, made, agent.APIMalloc)
	s.Free(s.freed, gone, 1, 2)
	const rest = 16
	s.large = s.Large((25<<12)-largeSize-rest, largeSize, rest, made, true)
	return s
}

// judged is the Explanation of a failure of the only running thread.
type judged struct {
	*Explanation
	thread *FailingThread
	limits []evidence.Limit
}

func (s *scene) explain(t *testing.T, f evidence.Failure) *judged {
	t.Helper()
	h, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := &image.Process{Threads: []image.Thread{{Ref: evidence.ThreadRef{Number: 1, TID: 100, Name: "worker"}}}}
	heap := &Heap{Heap: h, process: p}
	if err := heap.ReadErrors(); err != nil {
		t.Fatal(err)
	}
	j := &judged{thread: &FailingThread{Process: p, Thread: &p.Threads[0]}}
	j.Explanation = NewExplanation(heap, &f, func(l ...evidence.Limit) { j.limits = append(j.limits, l...) })
	return j
}

// sentence describes the failure, with the names of the blame, in a process with that
// many threads.
func (j *judged) sentence(blame *staticscan.Blame, threads int) string {
	f := *j.failure
	failure.Describe(&f, failure.Names{Accessed: blame.Accessed, Pointer: blame.Pointer, Value: blame.Value, Threads: threads,
		Heap: (*failure.HeapWords)(j.Words)})
	return f.Sentence
}

func (s *scene) error(kind, when uint32, object evidence.Addr, pointer evidence.Addr) agent.RawError {
	e := agent.RawError{Kind: kind, When: when, Thread: 1, TID: 100, Pointer: uint64(pointer), Fatal: 1, Frames: 2}
	e.PC[0], e.PC[1] = 0x403010, 0x403020
	if object != 0 {
		e.WordValid, e.Object, e.Word = 1, uint64(object), s.Word(object)
		e.Size = e.Word & agent.SizeMask
		e.Slot, e.SlotEnd = uint64(object), uint64(object)+48
	}
	return e
}

// canaryWord is the guard of the live object, used as a pointer.
func canaryWord(s *scene) evidence.Addr { return evidence.Addr(s.CanaryWord(s.live)) }

const madeWords = `allocated by thread 1 "worker" at 0x401010`
const lifeOfFreed = "freed by a thread that ended (LWP 101) at 0x402010, " + madeWords

// TestEndedByAgent: the error that ended the process is the failure, in words.
func TestEndedByAgent(t *testing.T) {
	for _, x := range []struct {
		name  string
		error func(s *scene) agent.RawError
		kind  evidence.FailureKind
		want  string
	}{
		{"double free", func(s *scene) agent.RawError {
			e := s.error(agent.ErrorDoubleFree, agent.AtFree, s.freed, s.freed)
			e.FreeSite, e.FreeThread = 2, 2
			return e
		}, evidence.DoubleFree, `double free of a 40-byte object at FREED, thread 1 "worker": first ` + lifeOfFreed},
		{"realloc of freed", func(s *scene) agent.RawError {
			return s.error(agent.ErrorDoubleFree, agent.AtRealloc, s.freed, s.freed)
		}, evidence.DoubleFree, `realloc, after its free, of a 40-byte object at FREED, thread 1 "worker": ` + lifeOfFreed},
		{"middle", func(s *scene) agent.RawError {
			return s.error(agent.ErrorFreeMiddle, agent.AtFree, s.live, s.live+8)
		}, evidence.InvalidFree, `free of a pointer 8 bytes into a 40-byte object at LIVE, thread 1 "worker": ` + madeWords},
		{"wild", func(s *scene) agent.RawError {
			return s.error(agent.ErrorFreeWild, agent.AtFree, 0, 24)
		}, evidence.InvalidFree, `free of a wild pointer, thread 1 "worker": 0x18 is at offset 0x18 from a null pointer`},
		{"fill", func(s *scene) agent.RawError {
			return s.error(agent.ErrorFreeWild, agent.AtFree, 0, evidence.Addr(agent.FillWord(agent.Base+agent.OffObjects, uint64(s.freed))))
		}, evidence.InvalidFree, `free of a wild pointer that was read from freed memory, thread 1 "worker": WORD is what a freed 40-byte object at FREED is filled with; ` + lifeOfFreed},
		{"mismatch", func(s *scene) agent.RawError {
			e := s.error(agent.ErrorMismatch, agent.AtFree, s.live, s.live)
			e.API = uint32(agent.APINewArray)
			return e
		}, evidence.MismatchedFree, `mismatched free: operator delete[] released a 40-byte object at LIVE from malloc, thread 1 "worker": ` + madeWords},
		{"overflow", func(s *scene) agent.RawError {
			s.Memory.Write(s.live+40, []byte("xyz"))
			e := s.error(agent.ErrorOverflow, agent.AtFree, s.live, s.live)
			e.Damage, e.DamageEnd, e.BytesLength = uint64(s.live+40), uint64(s.live+43), 3
			e.Guard = s.CanaryWord(s.live)
			copy(e.Bytes[:], "xyz")
			return e
		}, evidence.HeapOverflow, `heap overflow found, thread 1 "worker": 3 bytes past the end of a 40-byte object at LIVE were overwritten, seen when it was freed; ` + madeWords},
		{"use after free at exit", func(s *scene) agent.RawError {
			s.Memory.Write(s.freed+8, []byte("x"))
			e := s.error(agent.ErrorUseAfterFree, agent.AtExit, s.freed, 0)
			e.Damage, e.DamageEnd, e.BytesLength = uint64(s.freed+8), uint64(s.freed+9), 1
			e.Bytes[0] = 'x'
			return e
		}, evidence.UseAfterFree, `use after free found, thread 1 "worker": 1 byte at offset 8 of a freed 40-byte object at FREED was overwritten, seen by the check at exit; ` + lifeOfFreed},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newScene()
			s.Error(x.error(s))
			j := s.explain(t, evidence.Failure{Kind: evidence.Abort, Thread: &evidence.ThreadRef{Number: 1, TID: 100, Name: "worker"},
				Signal: &evidence.Signal{Number: 6}, Proof: evidence.FromCore, Message: "stale"})
			if told, err := j.ExplainEnd(100); err != nil || !told {
				t.Fatalf("the error did not end the process: %v, %v", told, err)
			}
			f := j.failure
			word := evidence.Addr(agent.FillWord(agent.Base+agent.OffObjects, uint64(s.freed)))
			names := strings.NewReplacer(s.live.String(), "LIVE", s.freed.String(), "FREED", word.String(), "WORD")
			if got := names.Replace(j.sentence(&staticscan.Blame{}, 2)); got != x.want {
				t.Errorf("%s\nwant %s", got, x.want)
			}
			if f.Kind != x.kind || f.Proof != evidence.FromCore || f.Message != "" {
				t.Errorf("kind %s, proof %s, message %q", f.Kind, f.Proof, f.Message)
			}
			findings, err := j.Findings(j.thread)
			if err != nil {
				t.Error(err)
			}
			// The judges' findings about the same damage are not repeated.
			if n := len(findings); n != 1 {
				t.Errorf("%d findings: %+v", n, findings)
			}
			for _, finding := range findings {
				if err := finding.Check(); err != nil {
					t.Error(err)
				}
				if len(finding.Call.Stack.Frames) != 2 || len(finding.Threads) != 1 {
					t.Errorf("call %+v, threads %+v", finding.Call, finding.Threads)
				}
			}
		})
	}
}

// Another thread's end is not this thread's failure.
func TestFatalOfOtherThread(t *testing.T) {
	s := newScene()
	e := s.error(agent.ErrorFreeWild, agent.AtFree, 0, 24)
	e.TID = 77
	s.Error(e)
	if told, err := s.explain(t, evidence.Failure{}).ExplainEnd(100); told || err != nil {
		t.Errorf("it is: %v", err)
	}
}

// fault is a memory fault at an address through a register.
func fault(kind evidence.FailureKind, addr, base evidence.Addr) evidence.Failure {
	return evidence.Failure{Kind: kind, Signal: &evidence.Signal{Number: 11}, Proof: evidence.FromCore,
		Fault: &evidence.Fault{Addr: addr, Access: evidence.Write, Size: 4, Proof: evidence.FromCore},
		Instruction: &evidence.Instruction{Operands: []evidence.Operand{{Access: evidence.Write, Address: &addr,
			Registers: []evidence.Register{{Name: "rax", Value: base}}}}}}
}

// unmapped is a fault at an address in no mapping.
func unmapped(addr, base evidence.Addr) evidence.Failure {
	f := fault(evidence.UnmappedAddress, addr, base)
	f.Fault.Place.Class = evidence.PlaceUnmapped
	return f
}

func TestHeapFault(t *testing.T) {
	word := func(o evidence.Addr) evidence.Addr {
		return evidence.Addr(agent.FillWord(agent.Base+agent.OffObjects, uint64(o)))
	}
	for _, x := range []struct {
		name     string
		fault    func(s *scene) evidence.Failure
		kind     evidence.FailureKind
		proof    evidence.Proof
		sentence string
		findings []evidence.FindingKind
	}{
		{"fill word", func(s *scene) evidence.Failure {
			return fault(evidence.NonCanonical, word(s.freed)+16, word(s.freed))
		}, evidence.UseAfterFree, evidence.FromCore,
			"use after free by a write: WORD was read from a freed 40-byte object at FREED; " + lifeOfFreed,
			[]evidence.FindingKind{evidence.FindingUseAfterFree}},
		{"fill word with an offset", func(s *scene) evidence.Failure {
			return fault(evidence.NonCanonical, word(s.freed)+24, word(s.freed)+24)
		}, evidence.UseAfterFree, evidence.FromCore,
			"use after free by a write: WORD+24 was read from a freed 40-byte object at FREED (and 24 was added to it); " + lifeOfFreed,
			[]evidence.FindingKind{evidence.FindingUseAfterFree}},
		{"fill word far away", func(s *scene) evidence.Failure {
			return fault(evidence.NonCanonical, word(s.freed)+4096, word(s.freed)+4096)
		}, evidence.UseAfterFree, evidence.Inferred, "", []evidence.FindingKind{evidence.FindingUseAfterFree}},
		{"fill word of memory that was used again", func(s *scene) evidence.Failure {
			s.Alloc(s.freed, 40, agent.Call{Site: 1, Thread: 1}, agent.APIMalloc)
			return fault(evidence.NonCanonical, word(s.freed), word(s.freed))
		}, evidence.UseAfterFree, evidence.Inferred,
			"use after free by a write: WORD was read from freed memory at FREED, which is a 40-byte object by now; " + madeWords,
			[]evidence.FindingKind{evidence.FindingUseAfterFree}},
		{"canary word", func(s *scene) evidence.Failure {
			return fault(evidence.NonCanonical, canaryWord(s)+16, canaryWord(s))
		}, evidence.HeapOverflow, evidence.Inferred,
			"heap overflow by a write: CANARY is the agent's guard of a 40-byte object at LIVE; " + madeWords, nil},
		{"canary word far away", func(s *scene) evidence.Failure {
			return fault(evidence.NonCanonical, canaryWord(s)+4096, canaryWord(s)+4096)
		}, evidence.NonCanonical, evidence.FromCore, "", nil},
		{"guard page", func(s *scene) evidence.Failure {
			return fault(evidence.ProtectedPage, s.large+largeSize+16, s.large+largeSize+16)
		}, evidence.HeapOverflow, evidence.FromCore,
			"heap overflow by a write: END+16 is 16 bytes after a 100000-byte object at LARGE, in the guard page after it; " + madeWords,
			[]evidence.FindingKind{evidence.FindingHeapObject}},
		{"guard page of a freed object", func(s *scene) evidence.Failure {
			s.FreeLarge(s.large, agent.Call{Site: 2, Thread: 2})
			return fault(evidence.ProtectedPage, s.large+largeSize+16, s.large)
		}, evidence.UseAfterFree, evidence.FromCore, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"guard page, from another object", func(s *scene) evidence.Failure {
			return fault(evidence.ProtectedPage, s.large+largeSize+16, s.live)
		}, evidence.HeapOverflow, evidence.Inferred, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"far past a freed object", func(s *scene) evidence.Failure {
			s.FreeLarge(s.large, agent.Call{Site: 2, Thread: 2})
			return fault(evidence.UnmappedAddress, s.large+1<<20, s.large+1<<20)
		}, evidence.UnmappedAddress, evidence.FromCore, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"before an object that a register points to", func(s *scene) evidence.Failure {
			return unmapped(s.large-1<<24, s.large)
		}, evidence.HeapUnderflow, evidence.Inferred, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"far past an object that a register points to", func(s *scene) evidence.Failure {
			return unmapped(s.live+40+1<<30, s.live)
		}, evidence.HeapOverflow, evidence.Inferred,
			"heap overflow by a write: LIVE+40+2^30 is 1073741824 bytes after a 40-byte object at LIVE; " + madeWords,
			[]evidence.FindingKind{evidence.FindingHeapObject}},
		{"beyond all objects, from one that a register points to", func(s *scene) evidence.Failure {
			return unmapped(s.live+1<<45, s.live)
		}, evidence.HeapOverflow, evidence.Inferred, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"in a stack, with a live object in a register", func(s *scene) evidence.Failure {
			f := unmapped(s.live+1<<45, s.live)
			f.Fault.Place.Class = evidence.PlaceStackGuard
			return f
		}, evidence.UnmappedAddress, evidence.FromCore, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"guard page, from the object after it", func(s *scene) evidence.Failure {
			const rest = 16
			second := s.Large((25<<12)-largeSize-rest, largeSize, rest, agent.Call{Site: 1, Thread: 1}, true)
			return fault(evidence.ProtectedPage, s.large+largeSize+16, second)
		}, evidence.HeapUnderflow, evidence.Inferred, "", []evidence.FindingKind{evidence.FindingHeapObject}},
		{"null, beside no object", func(s *scene) evidence.Failure { return fault(evidence.NullPointer, 8, 0) },
			evidence.NullPointer, evidence.FromCore, "", nil},
		{"wild, with a live object in a register", func(s *scene) evidence.Failure {
			f := fault(evidence.WildPointer, 0x123456789000, s.live)
			return f
		}, evidence.WildPointer, evidence.FromCore, "", []evidence.FindingKind{evidence.FindingHeapObject}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newScene()
			f := x.fault(s)
			j := s.explain(t, f)
			if _, err := j.ExplainFault(); err != nil {
				t.Error(err)
			}
			got := j.failure
			if got.Kind != x.kind || got.Proof != x.proof {
				t.Errorf("kind %s [%s], want %s [%s]", got.Kind, got.Proof, x.kind, x.proof)
			}
			names := strings.NewReplacer(canaryWord(s).String(), "CANARY", (word(s.freed) + 24).String(), "WORD+24", word(s.freed).String(), "WORD", s.freed.String(), "FREED",
				(s.large + largeSize + 16).String(), "END+16", s.large.String(), "LARGE",
				(s.live + 40 + 1<<30).String(), "LIVE+40+2^30", s.live.String(), "LIVE")
			if text := names.Replace(j.sentence(&staticscan.Blame{}, 1)); x.sentence != "" && text != x.sentence {
				t.Errorf("%s\nwant %s", text, x.sentence)
			}
			findings, err := j.Findings(j.thread)
			if err != nil {
				t.Error(err)
			}
			var kinds []evidence.FindingKind
			for _, f := range findings {
				kinds = append(kinds, f.Kind)
			}
			if fmt.Sprint(kinds) != fmt.Sprint(x.findings) {
				t.Errorf("findings %v, want %v", kinds, x.findings)
			}
		})
	}
}

// The origin of a canary that was used as a pointer names the object.
func TestBlameGuard(t *testing.T) {
	for _, holds := range []bool{true, false} {
		s := newScene()
		value := canaryWord(s)
		j := s.explain(t, fault(evidence.NonCanonical, value+16, value))
		if _, err := j.ExplainFault(); err != nil {
			t.Fatal(err)
		}
		cell := s.live + 40
		blame := &staticscan.Blame{Role: staticscan.RolePointer, Pointer: "v[i]", Accessed: "v[i]->next", Value: &value, Cell: &cell, CellHolds: holds}
		j.AddOrigin(blame)
		want := fmt.Sprintf("heap overflow by a write of v[i]->next: v[i] was read from the agent's canary, directly past the end of a 40-byte object at %v; %s", s.live, madeWords)
		if got := j.sentence(blame, 1); (got == want) != holds {
			t.Errorf("the cell holds the value: %v; %s\nwant %s", holds, got, want)
		}
	}
}

// The origin of the bad pointer says where in the object it was read.
func TestBlameHeap(t *testing.T) {
	s := newScene()
	value := evidence.Addr(agent.FillWord(agent.Base+agent.OffObjects, uint64(s.freed)))
	j := s.explain(t, fault(evidence.NonCanonical, value, value))
	if _, err := j.ExplainFault(); err != nil {
		t.Fatal(err)
	}
	cell := s.freed + 8
	blame := &staticscan.Blame{Role: staticscan.RolePointer, Pointer: "n->next", Accessed: "n->next->value", Value: &value, Cell: &cell, CellHolds: true}
	j.AddOrigin(blame)
	want := fmt.Sprintf("use after free by a write of n->next->value: n->next was read from offset 8 of a freed 40-byte object at %v; %s", s.freed, lifeOfFreed)
	if got := j.sentence(blame, 1); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A bad pointer that was read from a freed object whose fill it had replaced.
func TestReadStale(t *testing.T) {
	for _, holds := range []bool{true, false} {
		s := newScene()
		j := s.explain(t, fault(evidence.NullPointer, 8, 0))
		if _, err := j.ExplainFault(); err != nil {
			t.Fatal(err)
		}
		cell, value := s.freed+8, evidence.Addr(0)
		blame := &staticscan.Blame{Role: staticscan.RolePointer, Pointer: "n->next", Value: &value, Cell: &cell, CellHolds: holds}
		j.AddOrigin(blame)
		f := j.failure
		if stale := f.Kind == evidence.UseAfterFree && f.Proof == evidence.Inferred; stale != holds {
			t.Errorf("the cell holds the value: %v; kind %s [%s]: %s", holds, f.Kind, f.Proof, j.sentence(blame, 1))
		}
	}
}

// Damage that is unrelated to the failure is shown after related damage, up to
// a bound, and the rest is counted.
func TestDamageBesideFailure(t *testing.T) {
	s := newScene()
	many := s.Small(16, 64)
	for i := range 20 {
		o := s.Alloc(many+evidence.Addr(16*i), 8, agent.Call{Site: 1, Thread: 1}, agent.APIMalloc)
		s.Memory.Write(o+8, []byte{1})
	}
	s.Memory.Write(s.last+40, []byte("yyyyyyyy"))
	s.Memory.Write(s.first+40, []byte("xxxxxxxx")) // up to live
	j := s.explain(t, fault(evidence.NullPointer, 8, 0))
	j.cell = s.live + 16
	findings, err := j.Findings(j.thread)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(findings); n != shownFindings {
		t.Fatalf("%d findings", n)
	}
	f := findings[0]
	if f.Kind != evidence.FindingHeapOverflow || f.Object.Addr != s.first || f.Proof != evidence.FromCore ||
		f.Beyond == nil || f.Beyond.Addr != s.live || !f.Damage.Reaches || f.Damage.Overwritten != 8 {
		t.Errorf("the first one is %+v", f)
	}
	if j.failure.Kind != evidence.NullPointer {
		t.Errorf("the failure became %s", j.failure.Kind)
	}
	const want = "15 further findings of the heap are left out; 22 objects are damaged in all"
	if l := j.limits; len(l) != 1 || l[0].Text != want {
		t.Errorf("limits %+v, want %q", l, want)
	}
}

// A damage that leaves the object's own end alone may have come from the other
// side: it is only inferred.
func TestUnderflowOfNeighbour(t *testing.T) {
	s := newScene()
	s.Memory.Write(s.first+47, []byte{1})
	j := s.explain(t, evidence.Failure{Kind: evidence.NoFailure})
	findings, err := j.Findings(j.thread)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(findings); n != 1 {
		t.Fatalf("%d findings", n)
	}
	f := findings[0]
	if f.Proof != evidence.Inferred || len(f.Facts) != 1 || !strings.Contains(f.Facts[0].Text, fmt.Sprintf("an underflow of a 40-byte object at %v", s.live)) {
		t.Errorf("%+v", f)
	}
}

func TestArticled(t *testing.T) {
	for size, want := range map[uint64]string{0: "a", 1: "a", 8: "an", 11: "an", 18: "an", 80: "an", 88000: "an", 110: "a", 180: "a",
		1100: "a", 11000: "an", 18000: "an", 110000: "a", 40: "a"} {
		if got := articled(size); got != fmt.Sprintf("%s %d-byte object", want, size) {
			t.Errorf("%d: %s", size, got)
		}
	}
}

func TestProgramSite(t *testing.T) {
	stack := func(functions ...string) []evidence.Frame {
		var frames []evidence.Frame
		for i, name := range functions {
			frames = append(frames, evidence.Frame{Site: evidence.Site{Module: "/bin/program", Function: name, Line: i + 1}})
		}
		return frames
	}
	for want, functions := range map[string][]string{
		"sdsnew":       {"zmalloc", "sdsnew", "main"},
		"list_resize":  {"_PyMem_RawRealloc", "PyMem_Realloc", "list_resize"},
		"grow":         {"l_alloc", "luaM_realloc_", "grow"},
		"session_free": {"session_free", "logout"},
		"make":         {"std::vector<int>::push_back", "make"},
		"copy":         {"g_strdup", "copy"},
		"drop":         {"zfree", "drop"},
		"xmalloc":      {"xmalloc", "std::f"},
	} {
		frames := stack(functions...)
		wrappers := make([]bool, len(frames))
		for i := range frames {
			wrappers[i] = image.NamedAsAllocator(frames[i].Site.Function)
		}
		if got := programSite(frames, wrappers); got == nil || got.Function != want {
			t.Errorf("%v: got %+v, want %s", functions, got, want)
		}
	}
	if got := programSite(nil, nil); got != nil {
		t.Errorf("got %+v", got)
	}
}
