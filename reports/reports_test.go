package reports

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/evidence"
	"diagnose/reports/secrets"
)

var update = flag.Bool("update", false, "write the golden files again")

func addr(a evidence.Addr) *evidence.Addr { return &a }

func site(function, file string, line, column int) evidence.Site {
	return evidence.Site{PC: 0x401136, Module: "/srv/bin/server", BuildID: "8a5f", ModuleOffset: 0x1136,
		Function: function, FunctionOffset: 0x16, File: file, Line: line, Column: column}
}

// smashedFinding has every part of an overrun of the stack.
func smashedFinding() evidence.Finding {
	call := site("read_name", "server.c", 71, 2)
	return evidence.Finding{Kind: evidence.FindingStackSmashing, Proof: evidence.Inferred, Addr: 0x7ffe0158, Size: 8, Site: &call,
		Summary: "the contents of the array s.name (char [24]) continue past its end over the return address of read_name",
		Overrun: &evidence.StackOverrun{Function: "read_name", Word: evidence.WordReturnAddress, WordAddr: 0x7ffe0158, Run: evidence.RunText,
			Start: 0x7ffe0120, End: 0x7ffe015c, Contents: evidence.Bytes{Hex: hex.EncodeToString([]byte("to whom it may concern")), Text: "to whom it may concern"},
			Arrays: []evidence.FrameArray{{Name: "s.name", Type: "char [24]", Function: "read_name", File: "server.c", Line: 69, Addr: 0x7ffe0120, Size: 24, Following: 36}},
			Writers: []evidence.FrameWriter{{Call: true, Callee: "strcpy", Writes: true, Site: call}, {Call: true, Argument: 1, Site: call},
				{Writes: true, Site: site("read_name", "server.c", 73, 0)}},
			Same: []evidence.SameBytes{{Place: evidence.CopyArgument, Name: "argv[1]", Addr: 0x7ffe0f00, Size: 60},
				{Place: evidence.CopyEnvironment, Name: "USER_NAME", Addr: 0x7ffe0fa0, Size: 60},
				{Place: evidence.CopyGlobal, Name: "last_name", Addr: 0x4c0400, Size: 40, Offset: 20}, {Place: evidence.CopyConstant, Addr: 0x402010, Size: 60},
				{Place: evidence.CopyHeap, Addr: 0x5c0400, Size: 60}},
			Proof: evidence.Inferred}}
}

// sample is a case that uses every part of the model.
func sample() *evidence.Case {
	worker := evidence.ThreadRef{Number: 3, TID: 4711, Start: "worker"}
	first := evidence.ThreadRef{Number: 1, TID: 4709, Start: "main"}
	second := evidence.ThreadRef{Number: 2, TID: 4710, Start: "worker"}
	at := site("handle_login", "server.c", 42, 17)
	return &evidence.Case{
		Program: evidence.Program{Source: evidence.SourceCore, Path: "core.4709", Exe: "/srv/bin/server", BuildID: "8a5f",
			Command: "server", Args: "server --port 80 --password hunter2", PID: 4709, Threads: 3},
		Failure: evidence.Failure{
			Kind: evidence.NullPointer, Proof: evidence.FromCore,
			Sentence: `null pointer read of session->user->name in handle_login, thread 3 "worker": session->user is null`,
			Accessed: "session->user->name", Pointer: "session->user",
			Thread: &worker,
			Signal: &evidence.Signal{Number: 11, Name: "SIGSEGV", Code: 1, CodeName: "SEGV_MAPERR", Addr: 8, HasAddr: true},
			Fault: &evidence.Fault{Addr: 8, Access: evidence.Read, Size: 8, Proof: evidence.FromCore,
				Place: evidence.Place{Addr: 8, Class: evidence.PlaceNearNull, Text: "at offset 8 from a null pointer", Proof: evidence.FromCore}},
			Site: &at,
			Instruction: &evidence.Instruction{PC: 0x401136, Bytes: "488b4008", Text: "mov rax, qword ptr [rax+0x8]",
				Operands: []evidence.Operand{
					{Text: "rax", Access: evidence.Write, Value: evidence.Value{Text: "0x0"}},
					{Text: "[rax+0x8]", Access: evidence.Read, Address: addr(8), Symbol: "session->user->name",
						Value:     evidence.Value{Unavailable: "memory at 0x8 is not mapped"},
						Registers: []evidence.Register{{Name: "rax", Value: 0}}},
				}},
			Source: &evidence.Source{File: "server.c", Lines: []evidence.SourceLine{
				{Number: 41, Text: "{"}, {Number: 42, Text: "\treturn strlen(session->user->name);", Failed: true}, {Number: 43, Text: "}"}}},
			Origin: []evidence.OriginStep{{Kind: evidence.OriginCell, Text: "rax was loaded from session->user at 0x4c02b0, which holds 0x0",
				Register: "rax", Symbol: "session->user", Type: "struct user *", Cell: addr(0x4c02b0), Value: addr(0), Site: &at,
				Instruction: "mov rax, qword ptr [rbp-0x18]", Proof: evidence.FromCore}},
			Check: &evidence.Check{Left: evidence.CheckedOperand{Name: "session->flags", Type: "unsigned int", Mask: 0x4, Value: "0", Proof: evidence.Inferred,
				Origin: []evidence.OriginStep{{Kind: evidence.OriginResult, Text: "it was returned by open_session", Symbol: "open_session", Site: &at,
					Instruction: "call 0x401126", Proof: evidence.Inferred}}},
				Relation: evidence.Equal, Right: evidence.CheckedOperand{Constant: true, Value: "0"}, Site: at, Instruction: "test byte ptr [rax+0x8], 0x4", Proof: evidence.FromCore},
			Recursion: &evidence.Recursion{Cycle: []evidence.Site{at}, Turns: 2, Depth: 9, StackBytes: 8 << 20},
			Exception: &evidence.Exception{Type: "std::runtime_error", What: "no token=abc123", Proof: evidence.FromCore},
		},
		Suppression: &evidence.Suppression{Reason: "known, see issue 12", Until: "2027-03-01", Entry: 2},
		Next:        &evidence.Next{Tool: evidence.NextRun, Reason: evidence.NextForHeap},
		Severity: &evidence.Severity{Class: evidence.ClassHeapOverflowWrite, Estimate: evidence.Exploitable, AtFailure: evidence.ClassSourceAVNearNull, Proof: evidence.FromCore,
			Reasons: []evidence.SeverityReason{
				{Kind: evidence.ReasonFinding, Class: evidence.ClassHeapOverflowWrite, Estimate: evidence.Exploitable, Access: evidence.Write, Number: 2, Proof: evidence.FromCore},
				{Kind: evidence.ReasonAccess, Class: evidence.ClassSourceAVNearNull, Estimate: evidence.NotExploitable, Access: evidence.Read, Addr: addr(8), NearNull: true, Proof: evidence.FromCore}}},
		Findings: []evidence.Finding{{Kind: evidence.FindingDeadlock, Summary: "threads 1 and 2 wait for each other",
			Threads: []evidence.ThreadRef{first, second}, Proof: evidence.FromCore,
			Facts: []evidence.Fact{{Name: "lock order", Text: "a before b, and b before a"}},
			Wait: []evidence.WaitEdge{{Waiter: first, What: "mutex", Object: 0x4c0300, Name: "a", Owner: &second, Site: &at},
				{Waiter: second, What: "mutex", Object: 0x4c0340, Name: "b", Owner: &first}}},
			overflowFinding(), doubleFreeFinding(), smashedFinding()},
		Stacks: []evidence.ThreadGroup{
			{Threads: []evidence.ThreadRef{worker}, Failing: true, Stack: evidence.Stack{
				Omitted: 7, OmittedAt: 2,
				Stopped: "memory at 0x7ffe0000 is not in the core",
				Frames: []evidence.Frame{
					{Index: 0, Kind: evidence.Inlined, Trust: evidence.TrustContext, Site: at,
						Args: []evidence.Variable{{Name: "session", Type: "struct session *", Location: "rdi",
							Value: evidence.Value{Text: "0x4c02b0", Address: addr(0x4c02b0), Fields: []evidence.Variable{
								{Name: "user", Value: evidence.Value{Text: "0x0"}}, {Name: "secret_key", Value: evidence.Value{Text: `"s3cr3t"`}}}}}},
						Locals: []evidence.Variable{{Name: "n", Type: "int", Value: evidence.Value{Unavailable: "optimized out"}}}},
					{Index: 1, Kind: evidence.Physical, Trust: evidence.TrustContext, Site: site("dispatch", "server.c", 90, 0)},
					{Index: 8, Kind: evidence.TailCall, Trust: evidence.TrustCallSites, Gap: evidence.GapOuter, Site: site("release", "pool.h", 12, 5),
						InlinedInto: []evidence.Site{site("drop", "pool.c", 31, 9)}},
					{Index: 9, Kind: evidence.SignalFrame, Trust: evidence.TrustCFI, Site: evidence.Site{PC: 0x7f0001}},
					{Index: 10, Kind: evidence.Physical, Trust: evidence.TrustScan, Site: evidence.Site{PC: 0x7f0002, Module: "/lib/libfoo.so", ModuleOffset: 0x12}},
				}}},
			{Threads: []evidence.ThreadRef{first, second}, Waiting: "waits for mutex a",
				Stack: evidence.Stack{Frames: []evidence.Frame{{Kind: evidence.Physical, Trust: evidence.TrustContext, Site: site("main", "server.c", 7, 1)}}}},
		},
		Goroutines: []evidence.Goroutine{{ID: 1, Status: "waiting", Wait: "chan receive", TID: 4709, Failing: true,
			Stack: evidence.Stack{Frames: []evidence.Frame{}}}},
		Scan: &evidence.Scan{Functions: []string{"handle_login"}, Instructions: 20, MemoryOperands: 7, Unresolved: 1,
			Suspects: []evidence.Suspect{{Kind: evidence.SuspectGlobal, Name: "cfg.workers[3].state", Type: "enum state", Address: 0x4c0100, Size: 4,
				Value: evidence.Value{Text: "BUSY|DIRTY (3)"}, Access: evidence.ReadWrite, Proof: evidence.FromCore,
				Lines: []evidence.SuspectUse{{Access: evidence.Read, Site: at}, {Access: evidence.Write, Site: site("handle_login", "server.c", 44, 2)}}}}},
		Ending: &evidence.Ending{EarlierMessages: 2, EarlierCalls: 1,
			Messages: []evidence.Message{{Stream: evidence.StandardError, Text: "login of joe\nfailed: token=abc123\n", Omitted: 12,
				Seen: seenCall(15, evidence.Moment{Thread: 3, Ordinal: 7}, worker, at)},
				{Stream: evidence.DeclaredFile, File: "users.out", Differs: true, Text: "joe 7\n", Seen: seenCall(9, evidence.Moment{Thread: 3, Ordinal: 2}, worker, at)}},
			Calls: []evidence.FailedCall{{Call: `openat(AT_FDCWD, "/srv/users", 0, 0)`, Error: "ENOENT", Meaning: "no such file or directory", Times: 3,
				Alike: 2, AlikePaths: []string{"/etc/users", "/usr/users"},
				Seen: seenCall(12, evidence.Moment{Thread: 3, Ordinal: 4}, worker, at)}},
			Panic: &evidence.Panic{Language: evidence.Rust, Text: "no user", File: "login.rs", Line: 3, Function: "login", Proof: evidence.Replayed}},
		Registers: []evidence.Register{{Name: "rax", Value: 0}, {Name: "rbx", Value: 1}, {Name: "rcx", Value: 2}, {Name: "rdx", Value: 3}, {Name: "rip", Value: 0x401136}},
		Modules:   []evidence.Module{{Path: "/srv/bin/server", BuildID: "8a5f", Start: 0x400000, End: 0x4c1000, Symbols: "dwarf"}},
		Limits: []evidence.Limit{{Subject: "/lib/libfoo.so", Text: "no debug information"},
			{Text: "core truncated at 12.3 MiB of 80.1 MiB", Severe: true}},
	}
}

// seenCall is a system call by code at a place.
func seenCall(position uint64, moment evidence.Moment, thread evidence.ThreadRef, at evidence.Site) evidence.Seen {
	return evidence.Seen{Moment: moment, Position: position, Thread: thread, Site: &at, Proof: evidence.Replayed, Stack: evidence.Stack{Frames: []evidence.Frame{
		{Index: 0, Kind: evidence.Physical, Trust: evidence.TrustContext, Site: evidence.Site{PC: 0x7f0002, Module: "/lib/libc.so.6", Function: "write"}},
		{Index: 1, Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: at}}}}
}

// heapCall is a call of malloc or free by a thread that ended, or by ref.
func heapCall(ref *evidence.ThreadRef, sites ...evidence.Site) *evidence.HeapCall {
	c := &evidence.HeapCall{Thread: &evidence.HeapThread{Ordinal: 3, TID: 4712, Ended: ref == nil, Ref: ref},
		Stack: evidence.Stack{Frames: []evidence.Frame{}}}
	for i, s := range sites {
		c.Stack.Frames = append(c.Stack.Frames, evidence.Frame{Index: i, Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: s})
	}
	if len(sites) > 0 {
		c.Site = &sites[0]
	}
	return c
}

// overflowFinding is of a string that was copied into the last bytes of an object and past its end.
// A password is part of the string.
func overflowFinding() evidence.Finding {
	first := evidence.ThreadRef{Number: 1, TID: 4709, Start: "main"}
	return evidence.Finding{Kind: evidence.FindingHeapOverflow, Proof: evidence.FromCore,
		Summary: "heap overflow: 11 bytes past the end of a 20-byte object at 0x2080000010b0 were overwritten",
		Addr:    0x2080000010c4, Size: 11, Site: heapCall(nil, site("make_name", "name.c", 12, 9)).Site,
		Facts: []evidence.Fact{{Name: "found", Text: "when the object was freed"}},
		Object: &evidence.HeapObject{Addr: 0x2080000010b0, Size: 20, Slot: 0x2080000010b0, SlotEnd: 0x2080000010d0, State: evidence.HeapLive,
			API: "malloc", Allocated: heapCall(&first, site("make_name", "name.c", 12, 9), site("main", "name.c", 40, 3))},
		Damage: &evidence.Damage{Start: 0x2080000010c4, End: 0x2080000010d0, Offset: 20, Overwritten: 11, Reaches: true,
			Before: hex.EncodeToString([]byte("user=x; password=")), Bytes: hex.EncodeToString([]byte("hunter2\xc1\xd3\xa7\x00\x01")),
			Expected: "f5c1d3a7958bb3c1d3a7e9f5", Text: "hunter2....."},
		Beyond: &evidence.HeapObject{Addr: 0x2080000010d0, Size: 1, Slot: 0x2080000010d0, SlotEnd: 0x2080000010f0, State: evidence.HeapFreed,
			API: "operator new[]"},
	}
}

func doubleFreeFinding() evidence.Finding {
	worker := evidence.ThreadRef{Number: 3, TID: 4711, Start: "worker"}
	return evidence.Finding{Kind: evidence.FindingDoubleFree, Proof: evidence.FromCore,
		Summary: "double free of a 40-byte object at 0x208000002000",
		Addr:    0x208000002000, Size: 40, Threads: []evidence.ThreadRef{worker},
		Object: &evidence.HeapObject{Addr: 0x208000002000, Size: 40, Slot: 0x208000002000, SlotEnd: 0x208000002030, State: evidence.HeapQuarantined,
			API: "operator new", Freed: heapCall(nil, site("drop", "pool.cc", 7, 1)), Allocated: heapCall(nil)},
		Call: heapCall(&worker, site("shutdown", "pool.cc", 31, 0)),
	}
}

// sampleHeap is a summary that uses every part of the model.
func sampleHeap() *evidence.Heap {
	return &evidence.Heap{Program: sample().Program, LiveObjects: 352, LiveBytes: 3<<20 + 700, MappedBytes: 8 << 20,
		AgentHeap: &evidence.AgentHeap{Threads: 4, Allocations: 1200345, Frees: 1199993, Quarantined: 1, QuarantinedBytes: 40, MetadataBytes: 300 << 10, Errors: 1},
		Sites: []evidence.HeapSite{
			{Allocated: *heapCall(nil, site("grow<a | b>", "table.cc", 88, 12), site("main", "table.cc", 9, 1)), LiveObjects: 5, LiveBytes: 2 << 20, Largest: 1 << 20},
			{Allocated: evidence.HeapCall{Stack: evidence.Stack{Frames: []evidence.Frame{{Kind: evidence.Physical, Trust: evidence.TrustCFI,
				Site: evidence.Site{PC: 0x7f0002, Module: "/lib/libfoo.so", ModuleOffset: 0x12}}}}}, LiveObjects: 340, LiveBytes: 1 << 20, Largest: 4096,
				Quarantined: 1, QuarantinedBytes: 40},
			{},
		},
		Elided: 7, Findings: []evidence.Finding{overflowFinding(), doubleFreeFinding()}, Damaged: 1,
		Limits: []evidence.Limit{{Text: "the core lacks 2 of 8 blocks of the heap", Severe: true}, {Subject: "/lib/libfoo.so", Text: "no debug information"}},
	}
}

// sampleMalloc is a summary of malloc's heap that uses every part of the model.
func sampleMalloc() *evidence.Heap {
	node := evidence.MallocKind{Name: "struct node", Shape: evidence.ShapeOne, Basis: evidence.BasisPointer, Proof: evidence.Inferred}
	shape := evidence.MallocKind{Name: "Pair<a | b>", Shape: evidence.ShapeStart, Basis: evidence.BasisVtable, Proof: evidence.Inferred}
	numbers := evidence.MallocKind{Name: "int", Shape: evidence.ShapeArray, Basis: evidence.BasisPointer, Proof: evidence.Inferred}
	text := evidence.MallocKind{Name: "text", Basis: evidence.BasisText, Proof: evidence.Inferred}
	return &evidence.Heap{Program: sample().Program, LiveObjects: 1210, LiveBytes: 2<<20 + 4000, MappedBytes: 5 << 20, Sites: []evidence.HeapSite{}, Damaged: 1,
		Malloc: &evidence.MallocHeap{Library: "/lib/libc.so.6", Version: "2.36", Mapped: 1, MappedBytes: 1 << 20,
			Arenas: []evidence.MallocArena{
				{Addr: 0x7f0000, Main: true, SystemBytes: 4 << 20, LiveObjects: 1207, LiveBytes: 1 << 20, Free: 12, FreeBytes: 9000, LargestFree: 4096, TopBytes: 70000},
				{Addr: 0x7f8000000030, SystemBytes: 132 << 10, LiveObjects: 2, LiveBytes: 4000, TopBytes: 131000},
			},
			Sizes:       []evidence.MallocSize{{Size: 1 << 20, Objects: 1, Bytes: 1 << 20}, {Size: 40, Objects: 1209, Bytes: 48360}},
			SizesElided: 3,
			Types: []evidence.MallocType{{Objects: 3, Bytes: 1 << 20, Largest: 1 << 20}, {MallocKind: node, Objects: 1200, Bytes: 48000, Largest: 40},
				{MallocKind: numbers, Objects: 1, Bytes: 4000, Largest: 4000}, {MallocKind: shape, Objects: 5, Bytes: 400, Largest: 80}, {MallocKind: text, Objects: 1, Bytes: 40, Largest: 40}},
			TypesElided: 1,
			Largest: []evidence.MallocObject{
				{Addr: 0x7f4000000010, Size: 1 << 20, Mapped: true, Holder: &evidence.Holder{Kind: evidence.HolderGlobal, Name: "cache.slots[3]", Type: "void *", Address: 0x404040}},
				{Addr: 0x405000, Size: 4000, Type: numbers, Holder: &evidence.Holder{Kind: evidence.HolderObject, Object: 0x404a00, ObjectSize: 40, ObjectOffset: 8}, HolderKind: &node},
				{Addr: 0x405010, Size: 900, Holder: &evidence.Holder{Kind: evidence.HolderVariable, Name: "main's unknown", Address: 0x7ffe10}},
				{Addr: 0x405020, Size: 800, Holder: &evidence.Holder{Kind: evidence.HolderStack, Address: 0x7ffe18}},
				{Addr: 0x405030, Size: 700, Holder: &evidence.Holder{Kind: evidence.HolderRegister}},
				{Addr: 0x405040, Size: 600, Holder: &evidence.Holder{Kind: evidence.HolderMemory, Address: 0x7f5010}},
				{Addr: 0x405050, Size: 500, Type: shape},
			},
			Leaks: &evidence.MallocLeaks{Proof: evidence.Inferred, Direct: 4, DirectBytes: 200, Indirect: 2, IndirectBytes: 80, Interior: 3, InteriorBytes: 120, Missing: 8192, Unwritten: 4096,
				Groups: []evidence.MallocLeak{{Type: node, Size: 40, Objects: 2, Indirect: 2, IndirectBytes: 80, First: 0x404b00}, {Size: 56, Objects: 1, First: 0x404c00}}, Elided: 1},
		},
		Limits: []evidence.Limit{evidence.Limit{Code: evidence.LimitHeapDamaged, Count: 1, Severe: true}.Worded(), evidence.Limit{Code: evidence.LimitMissingMemory, Count: 8192, Severe: true}.Worded(),
			evidence.Limit{Code: evidence.LimitLeaks, Reason: "the lists of free memory of some threads are not known"}.Worded()},
	}
}

func renderHeap(t *testing.T, h *evidence.Heap, opts Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHeap(&b, h, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func render(t *testing.T, c *evidence.Case, opts Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, f := range []struct {
		file string
		opts Options
	}{
		{"sample.txt", Options{Format: Text, Version: "test"}},
		{"sample.color.txt", Options{Format: Text, Color: true}},
		{"sample.md", Options{Format: Markdown}},
		{"sample.json", Options{Format: JSON, Version: "test"}},
	} {
		t.Run(f.file, func(t *testing.T) { compareGolden(t, f.file, render(t, sample(), f.opts)) })
		heap := strings.Replace(f.file, "sample", "heap", 1)
		t.Run(heap, func(t *testing.T) { compareGolden(t, heap, renderHeap(t, sampleHeap(), f.opts)) })
		malloc := strings.Replace(f.file, "sample", "malloc", 1)
		t.Run(malloc, func(t *testing.T) { compareGolden(t, malloc, renderHeap(t, sampleMalloc(), f.opts)) })
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-golden +got (write again with -update):\n%s", diff)
	}
}

func TestJSONMatchesSchema(t *testing.T) {
	opts := Options{Format: JSON, Version: "test"}
	// The schema must be able to refuse: an unknown kind, an unknown member.
	for _, x := range []struct {
		schema, text string
		changes      [][2]string
	}{
		{"case-2.json", render(t, sample(), opts), [][2]string{{`"null-pointer"`, `"no-such-kind"`}, {`"tid"`, `"no_such_member"`}, {`"0x8"`, `8`}}},
		{"heap-1.json", renderHeap(t, sampleHeap(), opts), [][2]string{{`"quarantined"`, `"no_such_member"`}, {`"live"`, `"no-such-state"`}}},
		{"heap-1.json", renderHeap(t, sampleMalloc(), opts), [][2]string{{`"system_bytes"`, `"no_such_member"`}, {`"vtable"`, `"no-such-basis"`}}},
	} {
		schema, err := jsonschema.NewCompiler().Compile("schema/" + x.schema)
		if err != nil {
			t.Fatal(err)
		}
		validate := func(text string) error {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return schema.Validate(value)
		}
		if err := validate(x.text); err != nil {
			t.Error(err)
		}
		for _, change := range x.changes {
			changed := strings.Replace(x.text, change[0], change[1], 1)
			if changed == x.text {
				t.Errorf("%s: there is no %s", x.schema, change[0])
			}
			if validate(changed) == nil {
				t.Errorf("%s accepts %s in place of %s", x.schema, change[1], change[0])
			}
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	want := sample()
	var got Document
	text := render(t, want, Options{Format: JSON, ShowSecrets: true})
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Case); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func TestSecretsAreRedactedInEveryFormat(t *testing.T) {
	for _, format := range Formats() {
		text := render(t, sample(), Options{Format: Format(format)})
		for _, secret := range []string{"hunter2", "abc123", "s3cr3t"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", format, secret)
			}
		}
		if strings.Contains(strings.ReplaceAll(text, " ", ""), hex.EncodeToString([]byte("hunter"))) {
			t.Errorf("%s shows hunter2 in hexadecimal", format)
		}
		open := render(t, sample(), Options{Format: Format(format), ShowSecrets: true})
		if !strings.Contains(open, "hunter2") {
			t.Errorf("%s hides the password although secrets are asked for", format)
		}
	}
}

func TestRedactText(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"prog --password hunter2 --port 80", "prog --password [redacted] --port 80"},
		{"prog --db-password=hunter2", "prog --db-password=[redacted]"},
		{"MYSQL_PASSWORD=x1 prog", "MYSQL_PASSWORD=[redacted] prog"},
		{"https://bob:pw@host/x", "https://bob:[redacted]@host/x"},
		{"Authorization: Bearer abcdefghijkl", "Authorization: Bearer [redacted]"},
		{"key AKIAABCDEFGHIJKLMNOP.", "key [redacted]."},
		{"AWS_SECRET_ACCESS_KEY=wJalr/x PATH=/bin", "AWS_SECRET_ACCESS_KEY=[redacted] PATH=/bin"},
		{"PGPASSWORD=x DB_PASS=y SECRET_KEY_BASE=z", "PGPASSWORD=[redacted] DB_PASS=[redacted] SECRET_KEY_BASE=[redacted]"},
		{`{"client_secret": "abc"}`, `{"client_secret": "[redacted]"}`},
		{"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- rest", "[redacted]-----END RSA PRIVATE KEY----- rest"},
		{"null pointer read in auth::token::parse", "null pointer read in auth::token::parse"},
		{"if (token == expected)", "if (token == expected)"},
		{"token: 0x7f001234, password=(nil), secret = <optimized out>", "token: 0x7f001234, password=(nil), secret = <optimized out>"},
		{"password=0x7f00123456789abcdef", "password=[redacted]"},
		{"next_token->kind == 3 in pass: 2", "next_token->kind == 3 in pass: 2"},
		{"double free or corruption (!prev)", "double free or corruption (!prev)"},
		{"server.c:42: parse: Assertion `token != 0' failed.", "server.c:42: parse: Assertion `token != 0' failed."},
	} {
		if got := redacting(&secrets.Finder{}).text(x.in); got != x.want {
			t.Errorf("text(%q) = %q, want %q", x.in, got, x.want)
		}
	}
}

func TestRedactSource(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{`	const char *password = "hunter2";`, `	const char *password = "[redacted]";`},
		{`	char db_pass[] = "x"; next();`, `	char db_pass[] = "[redacted]"; next();`},
		{`	password = read_password(session->token);`, `	password = read_password(session->token);`},
		{`	if (token == NULL) printf("no token");`, `	if (token == NULL) printf("no token");`},
	} {
		if got := redacting(&secrets.Finder{}).source(x.in); got != x.want {
			t.Errorf("source(%q) = %q, want %q", x.in, got, x.want)
		}
	}
}

// fillStrings sets every string below v except words of a fixed set, and returns how many there
// are.
func fillStrings(v reflect.Value, text string) (n int) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return 0
		}
		v.SetString(text)
		return 1
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fillStrings(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fillStrings(v.Index(0), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[evidence.Value]() && v.Type().Field(i).Name == "Fields" {
				continue // endless
			}
			n += fillStrings(v.Field(i), text)
		}
	}
	return n
}

// TestEveryStringIsRedacted covers fields that are added later as well.
func TestEveryStringIsRedacted(t *testing.T) {
	var c evidence.Case
	n := fillStrings(reflect.ValueOf(&c).Elem(), `password="hunter2"`) - len(c.Timings) // which are in no format
	text, err := json.Marshal(copied(&c, redacting(&secrets.Finder{})))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") {
		t.Errorf("a secret is left: %s", text)
	}
	if got := strings.Count(string(text), redactedMark); n < 100 || got < n {
		t.Errorf("%d of %d strings are redacted", got, n)
	}
}

// TestNoNull: a list of the schema is always a list in the document, at least an empty one.
func TestNoNull(t *testing.T) {
	c := sample()
	c.Stacks, c.Scan.Functions, c.Scan.Suspects, c.Goroutines[0].Stack.Frames, c.Failure.Recursion.Cycle = nil, nil, nil, nil, nil
	for _, show := range []bool{false, true} {
		if text := render(t, c, Options{Format: JSON, ShowSecrets: show}); strings.Contains(text, "null,") || strings.Contains(text, ": null") {
			t.Errorf("null in %s", text)
		}
	}
}

// Text from the target must not act on a terminal or end a code block.
func TestHostileText(t *testing.T) {
	c := sample()
	const evil = "a\x1b]0;owned\x07\n```\n# b\u202ec\u009b31m\x7f\U000e0041|d\xff"
	c.Failure.Sentence, c.Failure.Message = evil, evil
	c.Stacks[0].Stack.Frames[0].Site.Function = evil
	c.Stacks[0].Stack.Frames[0].Locals[0] = evidence.Variable{Name: evil, Type: evil, Value: evidence.Value{Text: evil}}
	c.Scan.Suspects[0].Name = evil
	c.Limits[0].Text, c.Limits[0].Subject, c.Modules[0].Path, c.Program.Exe, c.Program.Args = evil, evil, evil, evil, evil
	c.Stacks[0].Stack.Frames[1].Site.Module, c.Failure.Thread.Name, c.Findings[0].Facts[0].Name = evil, evil, evil
	for _, format := range []Format{Text, Markdown, JSON} {
		text := render(t, c, Options{Format: format})
		if i := strings.IndexAny(text, "\x1b\x07\x7f\u009b\u202e\U000e0041"); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("%s holds %q", format, text[i:min(len(text), i+20)])
		}
		if strings.Contains(text, "\n```\n# b") || strings.Contains(text, "\n# b") {
			t.Errorf("%s: hostile text broke out of its line", format)
		}
	}
	if md := render(t, c, Options{Format: Markdown}); strings.Contains(md, "c|d\\xff |") {
		t.Error("a pipe in a table cell is not escaped")
	}
}

// Unknown parts of an access leave no empty brackets.
func TestAccessText(t *testing.T) {
	for _, x := range []struct {
		access evidence.AccessKind
		size   int
		want   string
	}{
		{evidence.Read, 8, " (read of 8 bytes)"},
		{evidence.Write, 1, " (write of 1 byte)"},
		{evidence.Write, 0, " (write)"},
		{"", 4, " (4 bytes)"},
		{"", 0, ""},
	} {
		if got := accessText(&evidence.Fault{Access: x.access, Size: x.size}); got != x.want {
			t.Errorf("%q of %d bytes: %q, want %q", x.access, x.size, got, x.want)
		}
	}
}

// The bar is at the object's end if the damage begins after it, and is missing if the object is
// elsewhere.
func TestDump(t *testing.T) {
	f := &evidence.Finding{Object: &evidence.HeapObject{Addr: 0x1000, Size: 20},
		Damage: &evidence.Damage{Start: 0x1016, End: 0x1018, Offset: 22, Overwritten: 1, Before: "6162aaaa", Bytes: "00bb", Expected: "abbb"}}
	want := []string{
		"    0x0000000000001010        61 62|aa aa[00]bb                             ab....",
		"    expected                              ab",
	}
	check := func() {
		t.Helper()
		var got []string
		for _, l := range dump(f)[0].(verbatim) {
			got = append(got, l.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	check()
	f.Object.Addr = 0x2000
	want[0] = strings.Replace(want[0], "|", " ", 1)
	check()
	f.Damage.Bytes = "0"
	if d := dump(f); d != nil {
		t.Errorf("half a byte is shown: %v", d)
	}
}

// A secret whose name is in the object and whose value ran over its end is removed on both sides,
// and in the text.
func TestRedactDamage(t *testing.T) {
	const text = "api_key=abcdefgh"
	d := redacting(&secrets.Finder{}).damage(evidence.Damage{Before: hex.EncodeToString([]byte(text[:10])), Bytes: hex.EncodeToString([]byte(text[10:] + "\x00x")),
		Expected: "0101", Text: text[10:] + ".x"})
	want := evidence.Damage{Before: hex.EncodeToString([]byte(text[:8])) + "xxxx", Bytes: "xxxxxxxxxxxx0078", Expected: "0101", Text: "******.x"}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWriteRefusesContradiction(t *testing.T) {
	for name, breakIt := range map[string]func(*evidence.Case){
		"no kind":       func(c *evidence.Case) { c.Failure.Kind = "" },
		"proof":         func(c *evidence.Case) { c.Failure.Proof = "certain" },
		"two failing":   func(c *evidence.Case) { c.Stacks[1].Failing = true },
		"no thread":     func(c *evidence.Case) { c.Stacks[1].Threads = nil },
		"half a cycle":  func(c *evidence.Case) { c.Findings[0].Wait = c.Findings[0].Wait[:1] },
		"damage":        func(c *evidence.Case) { c.Findings[1].Damage.End = c.Findings[1].Damage.Start },
		"step":          func(c *evidence.Case) { c.Failure.Origin[0].Proof = "" },
		"suspect":       func(c *evidence.Case) { c.Scan.Suspects[0].Access = "looks" },
		"frame no kind": func(c *evidence.Case) { c.Stacks[1].Stack.Frames[0].Kind = "" },
	} {
		c := sample()
		breakIt(c)
		if err := Write(&bytes.Buffer{}, c, Options{Format: Text}); err == nil {
			t.Errorf("%s: written without an error", name)
		}
	}
}

// A suspect that only a rule names says so in its row.
func TestInferredSuspect(t *testing.T) {
	c := sample()
	c.Scan.Suspects[0].Proof = evidence.Inferred
	if text := render(t, c, Options{Format: Text}); !strings.Contains(text, "cfg.workers[3].state  [inferred]") {
		t.Errorf("the row does not say that the suspect is inferred:\n%s", text)
	}
}

func TestNumberRanges(t *testing.T) {
	var list []evidence.ThreadRef
	for _, n := range []int{1, 3, 4, 5, 9} {
		list = append(list, evidence.ThreadRef{Number: n})
	}
	if got, want := numberRanges(list), "1, 3-5, 9"; got != want {
		t.Errorf("numberRanges = %q, want %q", got, want)
	}
}
