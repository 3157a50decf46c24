package x86

import "testing"

func TestTextSmoke(t *testing.T) {
	for _, c := range []struct {
		code []byte
		want string
	}{
		{[]byte{0x48, 0x8b, 0x05, 0x10, 0, 0, 0}, "mov rax, qword ptr [rip+0x10]"},
		{[]byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, "mov rax, qword ptr fs:[0x28]"},
		{[]byte{0xc5, 0xf8, 0x77}, "vzeroupper"},
		{[]byte{0xf0, 0x0f, 0xb1, 0x0f}, "lock cmpxchg dword ptr [rdi], ecx"},
		{[]byte{0xf3, 0x48, 0xab}, "rep stosq qword ptr [rdi], rax"},
		{[]byte{0x8b, 0x45, 0xf8}, "mov eax, dword ptr [rbp-0x8]"},
	} {
		i, err := Decode(c.code, 0x1000)
		if err != nil {
			t.Errorf("% x: %v", c.code, err)
			continue
		}
		if got := i.Text(); got != c.want {
			t.Errorf("% x: %q, want %q", c.code, got, c.want)
		}
	}
}
