package staticscan

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// fakeEntry is the stack pointer at the entry of sliced functions; the word
// below it holds 5.
const fakeEntry = 0x8000

// sliced stops a function of the fake program at its first return. What the
// registers hold there is in sliceRegisters; the others are not known.
func sliced(t testing.TB, code string) *backwardSlice {
	t.Helper()
	around := fakeSurroundings()
	memory := around.memory.(fakeMemory)
	stack := make([]byte, 0x80)
	copy(stack[0x78:], words(5))
	memory[fakeEntry-0x80] = stack
	w := &processView{process: &image.Process{}, memory: memory, globals: map[evidence.Addr]global{}, code: map[evidence.Addr]*analysis{},
		writable: []dataRange{{fakeData, fakeDataEnd, &image.Module{Path: "/bin/program"}}}}
	a := analyseCode(assembled(t, code), 0x1000, around)
	a.function = &function{name: "work", module: &image.Module{}, entry: 0x1000, ranges: [][2]evidence.Addr{{0x1000, 0x1100}}}
	in := &Input{Process: w.process, Frames: make([]unwind.Frame, 1)}
	s := &backwardSlice{processView: w, in: in, frame: &in.Frames[0], a: a, entrySP: fakeEntry, memo: map[place]*node{}, variables: map[evidence.Addr][]variable{}}
	for s.now = range a.flow.insts {
		if a.flow.insts[s.now].Flow == x86.FlowReturn {
			break
		}
	}
	for r, v := range sliceRegisters {
		s.registers.Set(r, v)
	}
	return s
}

var sliceRegisters = map[image.Register]uint64{image.RDI: 5, image.RSI: 0xfffffffe, image.RDX: 3, image.RBX: 7, image.R9: 5}

// The bytes were assembled from asm by GNU as.
var computeTests = []struct {
	name, asm, code string
	want            uint64
	known           bool
}{
	{"constant subtracted", "mov rax,rdi; sub rax,16; ret", "4889f84883e810c3", ^uint64(10), true},
	{"sign extended", "movsxd rax,esi; ret", "4863c6c3", ^uint64(1), true},
	{"zero extended", "movzx eax,sil; ret", "400fb6c6c3", 0xfe, true},
	{"low byte only", "mov al,dil; ret", "4088f8c3", 0, false},
	{"mask", "mov eax,edi; and eax,15; ret", "89f883e00fc3", 0, false},
	{"mask of nothing", "and eax,0; ret", "83e000c3", 0, true},
	{"scaled index", "lea rax,[rdi+rdx*4+8]; ret", "488d449708c3", 25, true},
	{"cut to 32 bits", "mov eax,esi; add eax,edi; ret", "89f001f8c3", 3, true},
	{"product", "imul rax,rdx,24; ret", "486bc218c3", 72, true},
	{"shifted", "mov rax,rdx; shl rax,4; ret", "4889d048c1e004c3", 48, true},
	{"cleared", "xor eax,eax; ret", "31c0c3", 0, true},
	{"cleared by sub", "sub rax,rax; ret", "4829c0c3", 0, true},
	{"exclusive or", "xor eax,edi; ret", "31f8c3", 0, false},
	{"decreased", "mov rax,rdx; dec rax; ret", "4889d048ffc8c3", 2, true},
	{"one part unknown", "lea rax,[rdi+r8]; ret", "4a8d0407c3", 0, false},
	{"loaded", "mov rax,[rip+data+0x20]; ret", "488b0519300000c3", fakeHeap, true},
	{"cannot be read", "mov rax,[rdx]; ret", "488b02c3", 0, false},
}

func TestComputed(t *testing.T) {
	for _, test := range computeTests {
		s := sliced(t, test.code)
		got, known := s.register(s.now, x86.RAX, 0).best()
		if known != test.known || known && got != test.want {
			t.Errorf("%s (%s): %#x, known %v; want %#x, %v", test.name, test.asm, got, known, test.want, test.known)
		}
	}
}

var storeTests = []struct {
	name, asm, code string
	// want had what the word was given; RegNone where that cannot be told.
	want x86.Reg
}{
	{"one store", "mov [rsp-8],rdi; mov rax,[rsp-8]; ret", "48897c24f8488b4424f8c3", x86.RDI},
	{"perhaps stored", "test edi,edi; je 1f; mov [rsp-8],rdi; 1: mov rax,[rsp-8]; ret", "85ff740548897c24f8488b4424f8c3", x86.RegNone},
	{"two stores, one fits", "test edi,edi; je 1f; mov [rsp-8],rdi; jmp 2f; 1: mov [rsp-8],rsi; 2: mov rax,[rsp-8]; ret", "85ff740748897c24f8eb0548897424f8488b4424f8c3", x86.RDI},
	{"two stores, both fit", "test edi,edi; je 1f; mov [rsp-8],rdi; jmp 2f; 1: mov [rsp-8],r9; 2: mov rax,[rsp-8]; ret", "85ff740748897c24f8eb054c894c24f8488b4424f8c3", x86.RegNone},
	{"stored over its start", "mov [rsp-8],rdi; mov [rsp-12],rsi; mov rax,[rsp-8]; ret", "48897c24f848897424f4488b4424f8c3", x86.RegNone},
	{"stored beside it", "mov [rsp-8],rdi; mov [rsp-16],rsi; mov rax,[rsp-8]; ret", "48897c24f848897424f0488b4424f8c3", x86.RDI},
	{"index varies", "mov [rsp-8],rdi; mov rax,[rsp+rdx*8-8]; ret", "48897c24f8488b44d4f8c3", x86.RegNone},
	{"call in between", "sub rsp,24; mov [rsp+8],rbx; call f; mov rax,[rsp+8]; ret; f: ret", "4883ec1848895c2408e806000000488b442408c3c3", x86.RBX},
	{"callee has its address", "sub rsp,24; mov [rsp+8],rbx; lea rdi,[rsp+8]; call f; mov rax,[rsp+8]; ret; f: ret", "4883ec1848895c2408488d7c2408e806000000488b442408c3c3", x86.RegNone},
}

func TestStored(t *testing.T) {
	for _, test := range storeTests {
		s := sliced(t, test.code)
		n := s.register(s.now, x86.RAX, 0)
		if n.op != opLoad {
			t.Fatalf("%s (%s): %+v is no load", test.name, test.asm, n)
		}
		got := x86.RegNone
		if n.stored != nil {
			got = n.stored.reg
		}
		if got != test.want {
			t.Errorf("%s (%s): stored from %v, want %v", test.name, test.asm, got, test.want)
		}
	}
}
