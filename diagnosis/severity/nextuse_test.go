package severity

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// assemble returns the machine code of instructions in Intel syntax.
func assemble(t *testing.T, text string) []byte {
	t.Helper()
	dir := t.TempDir()
	source, object := filepath.Join(dir, "code.s"), filepath.Join(dir, "code.o")
	if err := os.WriteFile(source, []byte(".intel_syntax noprefix\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("as", source, "-o", object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestNextUse has the first instruction fail as it loads.
func TestNextUse(t *testing.T) {
	if _, err := exec.LookPath("as"); err != nil {
		t.Skip("as is not installed")
	}
	for _, c := range []struct {
		code string
		want evidence.SeverityClass
	}{
		{"mov rax, [rbx+8]; call rax", evidence.ClassCallAVTainted},
		{"mov rax, [rbx+8]; call [rax+16]", evidence.ClassCallAVTainted},
		{"mov rax, [rbx]; mov rdx, rax; jmp rdx", evidence.ClassBranchAVTainted},
		{"mov rax, [rbx]; mov rax, [rax]; jmp [rax]", evidence.ClassBranchAVTainted},
		{"mov rax, [rbx]; mov [rax+8], rcx", evidence.ClassDestAVTainted},
		{"mov rax, [rbx]; add qword ptr [rax], 1", evidence.ClassDestAVTainted},
		{"mov eax, [rbx]; mov [rdi+rax*4], ecx", evidence.ClassDestAVTainted}, // eax is a part of rax
		{"movsxd rax, dword ptr [rbx]; lea rax, [rdi+rax]; mov byte ptr [rax], 0", evidence.ClassDestAVTainted},
		{"mov rsp, [rbx]; ret", evidence.ClassReturnAV},
		{"movq xmm0, [rbx]; movq rax, xmm0; mov [rax], rcx", evidence.ClassDestAVTainted},
		// The value is gone, or is only stored, compared or read through.
		{"mov rax, [rbx]; mov eax, 1; call rax", ""},
		{"mov rax, [rbx]; xor eax, eax; mov [rax], rcx", ""},
		{"mov rax, [rbx]; mov [rdi], rax", ""},
		{"mov rax, [rbx]; push rax", ""},
		{"mov rax, [rbx]; cmp rax, rdx; mov [rdi], rcx", ""},
		{"mov rax, [rbx]; mov rcx, [rax]; mov [rdi], rcx", ""},
		{"mov rax, [rbx]; jne 1f; call rax; 1: nop", ""}, // the end of the basic block
		{"cmp rax, [rbx]; mov [rax], rcx", ""},
		{"mov rax, [rbx]; call 1f; 1: mov [rax], rcx", ""},
	} {
		code := assemble(t, c.code)
		inst, err := x86.Decode(code, 0x1000)
		if err != nil {
			t.Fatal(err)
		}
		operand := -1
		for i, o := range inst.Operands {
			if o.IsMemory {
				operand = i
			}
		}
		var got evidence.SeverityClass
		if u := nextUse(&inst, operand, code); u != nil {
			got = u.class
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.code, got, c.want)
		}
	}
}

// FuzzNextUse takes any bytes for the code after a failing load.
func FuzzNextUse(f *testing.F) {
	f.Add([]byte{0x48, 0x8b, 0x03, 0xff, 0xd0})
	f.Add([]byte{0xff, 0x20})
	f.Fuzz(func(t *testing.T, code []byte) {
		c := &evidence.Case{Failure: evidence.Failure{Kind: evidence.WildPointer, Proof: evidence.Inferred,
			Signal: &evidence.Signal{Number: 11, HasAddr: true}, Fault: &evidence.Fault{Addr: 1 << 40, Access: evidence.Read, Proof: evidence.FromCore},
			Instruction: &evidence.Instruction{PC: 0x1000}}}
		if inst, err := x86.Decode(code, 0x1000); err == nil {
			c.Failure.Instruction.Operands = make([]evidence.Operand, len(inst.Operands))
		}
		c.Failure.Sentence = "read"
		c.Severity = Of(Input{Case: c, Code: code})
		if c.Severity == nil {
			t.Fatal("no severity of a fault")
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
