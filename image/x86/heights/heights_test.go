package heights_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"diagnose/image/x86"
	"diagnose/image/x86/heights"
)

// TestHeights follows registers to the last instruction.
func TestHeights(t *testing.T) {
	for name, c := range map[string]struct {
		code []string
		reg  x86.Reg
		want heights.Position
	}{
		"push":              {[]string{"50 ; push rax", "c3 ; ret"}, x86.RSP, heights.Position{Origin: heights.FromCFA, Offset: -16}},
		"leave":             {[]string{"55 ; push rbp", "48 89 e5 ; mov rbp, rsp", "48 83 ec 20 ; sub rsp, 0x20", "c9 ; leave", "c3 ; ret"}, x86.RSP, heights.Position{Origin: heights.FromCFA, Offset: -8}},
		"ways disagree":     {[]string{"74 01 ; je +1", "50 ; push rax", "c3 ; ret"}, x86.RSP, heights.Position{}},
		"ways agree":        {[]string{"50 ; push rax", "74 01 ; je +1", "90 ; nop", "c3 ; ret"}, x86.RSP, heights.Position{Origin: heights.FromCFA, Offset: -16}},
		"lea":               {[]string{"48 8d 6c 24 08 ; lea rbp, [rsp+8]", "c3 ; ret"}, x86.RBP, heights.Position{Origin: heights.FromCFA, Offset: 0}},
		"lea with index":    {[]string{"48 8d 6c 04 08 ; lea rbp, [rsp+rax+8]", "c3 ; ret"}, x86.RBP, heights.Position{}},
		"half a register":   {[]string{"48 89 e5 ; mov rbp, rsp", "89 e5 ; mov ebp, esp", "c3 ; ret"}, x86.RBP, heights.Position{}},
		"kept in a word":    {[]string{"48 8d 7c 24 10 ; lea rdi, [rsp+16]", "48 89 7c 24 08 ; mov [rsp+8], rdi", "31 ff ; xor edi, edi", "48 8b 7c 24 08 ; mov rdi, [rsp+8]", "c3 ; ret"}, x86.RDI, heights.Position{Origin: heights.FromCFA, Offset: 8}},
		"a word changed":    {[]string{"48 89 64 24 08 ; mov [rsp+8], rsp", "c6 44 24 0f 00 ; mov byte [rsp+15], 0", "48 8b 7c 24 08 ; mov rdi, [rsp+8]", "c3 ; ret"}, x86.RDI, heights.Position{}},
		"a word on one way": {[]string{"74 05 ; je +5", "48 89 64 24 08 ; mov [rsp+8], rsp", "48 8b 7c 24 08 ; mov rdi, [rsp+8]", "c3 ; ret"}, x86.RDI, heights.Position{}},
	} {
		g := heights.New([]heights.Code{{Addr: 0x401000, Bytes: machine(t, c.code...)}})
		if got := g.Heights()[len(g.Insts)-1]; got == nil || got[c.reg] != c.want {
			t.Errorf("%s: %v is at %+v, want %+v", name, c.reg, got, c.want)
		}
	}
}

// machine is code from lines of hexadecimal digits with comments.
func machine(t *testing.T, lines ...string) (code []byte) {
	t.Helper()
	for _, line := range lines {
		text, _, _ := strings.Cut(line, ";")
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		code = append(code, b...)
	}
	return code
}
