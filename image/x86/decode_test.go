package x86

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"diagnose/evidence"
)

// describeOperands formats Decode's operands, the implicit ones in parentheses:
// "ecx=write 4".
func describeOperands(i *Inst) string {
	var parts []string
	for n := range i.Operands {
		o := &i.Operands[n]
		text := i.operandText(o)
		switch {
		case o.IsMemory:
			text = o.Memory.String()
		case o.IsImm:
			parts = append(parts, text)
			continue
		}
		text += "=" + strings.ReplaceAll(string(o.Access), "read/write", "modify")
		if o.Conditional {
			text += "?"
		}
		if o.Repeated {
			text += "*"
		}
		text += fmt.Sprintf("%d", o.Size)
		if o.Implicit {
			text = "(" + text + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// TestDecode has one instruction of each kind that a stage depends on, and one
// for each fault of x86asm that is corrected here.
func TestDecode(t *testing.T) {
	for _, c := range []struct{ code, text, operands string }{
		{"f30f1efa", "endbr64", ""},
		{"f30f1efb", "endbr32", ""},
		{"c5f877", "vzeroupper", ""},
		{"c5fd6f0510000000", "vmovdqa ymm0, ymmword ptr [rip+0x10]", "ymm0=write32 [rip+0x10]=read32"},
		{"62f1fd486f05f0ffffff", "vmovdqa64 zmm0, zmmword ptr [rip-0x10]", "zmm0=write64 [rip-0x10]=read64"},
		{"62f1fd496f4001", "vmovdqa64 zmm0{k1}, zmmword ptr [rax+0x40]", "zmm0=modify?64 [rax+0x40]=read?64 (k1=read8)"},
		{"488b05f0ffffff", "mov rax, qword ptr [rip-0x10]", "rax=write8 [rip-0x10]=read8"},
		{"64c5f96f042500000000", "vmovdqa xmm0, xmmword ptr fs:[0x0]", "xmm0=write16 fs:[0x0]=read16"},
		{"8b8700f0ffff", "mov eax, dword ptr [rdi-0x1000]", "eax=write4 [rdi-0x1000]=read4"},
		{"64488b042528000000", "mov rax, qword ptr fs:[0x28]", "rax=write8 fs:[0x28]=read8"},
		{"64482b142528000000", "sub rdx, qword ptr fs:[0x28]", "rdx=modify8 fs:[0x28]=read8"},
		{"48b8efcdab8967452301", "mov rax, 0x123456789abcdef", "rax=write8 0x123456789abcdef"},
		{"b8efbeadde", "mov eax, 0xdeadbeef", "eax=write4 0xdeadbeef"},
		{"48c7c0ffffffff", "mov rax, -0x1", "rax=write8 -0x1"},
		{"48a1efcdab8967452301", "mov rax, qword ptr [0x123456789abcdef]", "rax=write8 [0x123456789abcdef]=read8"},
		{"488d440110", "lea rax, [rcx+rax*1+0x10]", "rax=write8 [rcx+rax*1+0x10]=0"},
		{"31c0", "xor eax, eax", "eax=write4 eax=4"},
		{"8807", "mov byte ptr [rdi], al", "[rdi]=write1 al=read1"},
		{"50", "push rax", "rax=read8 ([rsp-0x8]=write8) (rsp=modify8)"},
		{"8f442408", "pop qword ptr [rsp+0x8]", "[rsp+0x10]=write8 ([rsp]=read8) (rsp=modify8)"},
		{"e8fbffffff", "call 0x1000", "0x1000 ([rsp-0x8]=write8) (rsp=modify8)"},
		{"ff1510000000", "call qword ptr [rip+0x10]", "[rip+0x10]=read8 ([rsp-0x8]=write8) (rsp=modify8)"},
		{"f3c3", "ret", "([rsp]=read8) (rsp=modify8)"},
		{"c9", "leave", "([rbp]=read8) (rsp=write8) (rbp=modify8)"},
		{"f3a4", "rep movsb byte ptr [rdi], byte ptr [rsi]", "[rdi]=write?*1 [rsi]=read?*1 (rdi=modify8) (rcx=modify8) (rsi=modify8)"},
		{"48ab", "stosq qword ptr [rdi], rax", "[rdi]=write8 rax=read8 (rdi=modify8)"},
		{"f0480fb10f", "lock cmpxchg qword ptr [rdi], rcx", "[rdi]=modify?8 rcx=read8 (rax=modify?8)"},
		{"f00fc107", "lock xadd dword ptr [rdi], eax", "[rdi]=modify4 eax=modify4"},
		{"8707", "xchg dword ptr [rdi], eax", "[rdi]=modify4 eax=modify4"},
		{"480f44c1", "cmove rax, rcx", "rax=modify?8 rcx=read8"},
		{"48f7f1", "div rcx", "rcx=read8 (rax=modify8) (rdx=modify8)"},
		{"f6e1", "mul cl", "cl=read1 (ax=modify2)"},
		{"d3e0", "shl eax, cl", "eax=modify4 cl=read1"},
		{"480fa307", "bt [rdi], rax", "[rdi]=read0 rax=read8"},
		{"0f1f440000", "nop [rax+rax*1]", "[rax+rax*1]=0"},
		{"0f050000", "syscall", "(rax=modify8) (rcx=write8) (r11=write8)"},
		{"3effe0", "notrack jmp rax", "rax=read8"},
		{"c4e2fd9f04e2", "", ""}, // some FMA: only that it has a name and a length
		{"8fe878c2c007", "xop.np.map8.c2", "(rax=modify?8) (rax=modify?8) (rax=modify?8)"},
	} {
		code := parseHexBytes(t, c.code)
		i, err := Decode(code, 0x1000)
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		if c.text == "" {
			continue
		}
		if got := i.Text(); got != c.text {
			t.Errorf("%s: %q, want %q", c.code, got, c.text)
		}
		if got := describeOperands(&i); got != c.operands {
			t.Errorf("%s (%s):\n got %s\nwant %s", c.code, c.text, got, c.operands)
		}
	}
}

func parseHexBytes(t *testing.T, text string) []byte {
	t.Helper()
	var out []byte
	for n := 0; n+1 < len(text); n += 2 {
		out = append(out, byte(parseHex(text[n:n+2])))
	}
	return out
}

func TestFlow(t *testing.T) {
	for code, want := range map[string]struct {
		flow   Flow
		target uint64
	}{
		"eb10": {FlowJump, 0x1012}, "ffe0": {FlowJump, 0}, "7405": {FlowBranch, 0x1007},
		"e2fe": {FlowBranch, 0x1000}, "e800000000": {FlowCall, 0x1005}, "ffd0": {FlowCall, 0},
		"c3": {FlowReturn, 0}, "0f0b": {FlowTrap, 0}, "cc": {FlowTrap, 0}, "f4": {FlowTrap, 0},
		"0f05": {FlowSyscall, 0}, "cd80": {FlowSyscall, 0}, "90": {FlowNext, 0},
	} {
		i, err := Decode(parseHexBytes(t, code), 0x1000)
		if err != nil || i.Flow != want.flow || i.Target != want.target || i.HasTarget != (want.target != 0) {
			t.Errorf("%s: flow %d to %#x (%v), want %+v", code, i.Flow, i.Target, err, want)
		}
	}
}

func TestReadWritten(t *testing.T) {
	for code, want := range map[string][2][]Reg{
		"488b4401f8":     {{RAX, RCX}, {RAX}},                // mov rax, [rcx+rax-8]
		"31c0":           {nil, {RAX}},                       // xor eax, eax
		"30c0":           {{RAX}, {RAX}},                     // xor al, al
		"b001":           {{RAX}, {RAX}},                     // mov al, 1
		"b801000000":     {nil, {RAX}},                       // mov eax, 1
		"480f44c1":       {{RAX, RCX}, {RAX}},                // cmove rax, rcx
		"55":             {{RBP, RSP}, {RSP}},                // push rbp
		"f348a5":         {{RCX, RSI, RDI}, {RCX, RSI, RDI}}, // rep movsq
		"0f1f440000":     {nil, nil},                         // nop [rax+rax]
		"c4e2fbf6c1":     {{RDX, RCX}, {RAX}},                // mulx rax, rax, rcx
		"488d0510000000": {nil, {RAX}},                       // lea rax, [rip+16]
	} {
		i, err := Decode(parseHexBytes(t, code), 0x1000)
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		if got := i.Read(); !reflect.DeepEqual(got, want[0]) {
			t.Errorf("%s reads %v, want %v", i.Text(), got, want[0])
		}
		if got := i.Written(); !reflect.DeepEqual(got, want[1]) {
			t.Errorf("%s writes %v, want %v", i.Text(), got, want[1])
		}
		for _, r := range i.Written() {
			if !i.Writes(r) {
				t.Errorf("%s: Writes(%v) denies it", i.Text(), r)
			}
		}
	}
}

func TestAddress(t *testing.T) {
	values := map[Reg]uint64{RBX: 0x1000, R9: 0x10}
	value := func(r Reg) (uint64, bool) { v, ok := values[r]; return v, ok }
	for code, want := range map[string]uint64{
		"428b448bfc":       0x103c, // mov eax, [rbx+r9*4-4]
		"8b0510000000":     0x1016, // mov eax, [rip+16]
		"8b042588ffffff":   0xffffffffffffff88,
		"67428b448bfc":     0x103c,
		"678b042588ffffff": 0xffffff88,
	} {
		i, err := Decode(parseHexBytes(t, code), 0x1000)
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		if got, ok := i.Operands[1].Memory.Address(value); !ok || got != want {
			t.Errorf("%s: address %#x, %v, want %#x", i.Text(), got, ok, want)
		}
	}
	i, err := Decode([]byte{0x8b, 0x01}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := i.Operands[1].Memory.Address(value); ok {
		t.Error("an address was computed from a register without a value")
	}
	if i.Operands[1].Access != evidence.Read {
		t.Errorf("access %q", i.Operands[1].Access)
	}
}

// TestTable finds misspelt mnemonics in the tables: each must be one that
// x86asm can return.
func TestTable(t *testing.T) {
	names := map[string]bool{"adcx": true, "adox": true}
	for op := range known().names {
		names[strings.ToLower(opName(op))] = true
	}
	for _, row := range behaviours {
		for op := range strings.FieldsSeq(row.ops) {
			if !names[op] {
				t.Errorf("the table has %q, which x86asm does not know", op)
			}
		}
	}
	for op := range memorySizes {
		if !names[op] {
			t.Errorf("memorySizes has %q, which x86asm does not know", op)
		}
	}
	for op := range flows {
		if !names[op] {
			t.Errorf("flows has %q, which x86asm does not know", op)
		}
	}
}
