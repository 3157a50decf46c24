package patch

import "testing"

func TestFlagsUnread(t *testing.T) {
	for _, x := range []struct {
		name string
		code []byte
		want bool
	}{
		{"cmp $1, %edi; ja", []byte{0x83, 0xff, 0x01, 0x77, 0x53}, true},
		{"ja; cmp", []byte{0x77, 0x53, 0x83, 0xff, 0x01}, false},
		{"mov %rax, %rdx; add $8, %rsp", []byte{0x48, 0x89, 0xc2, 0x48, 0x83, 0xc4, 0x08}, true},
		{"lea; cmovne", []byte{0x48, 0x8d, 0x40, 0x08, 0x48, 0x0f, 0x45, 0xc2}, false},
		{"inc, which keeps the carry; jc", []byte{0x48, 0xff, 0xc0, 0x72, 0x10}, false},
		{"adc %rcx, %rax", []byte{0x48, 0x11, 0xc8}, false},
		{"pop %rbx; ret", []byte{0x5b, 0xc3}, true},
		{"jmp", []byte{0xeb, 0x10}, false},
		{"mov, cut off", []byte{0x48, 0x89}, false},
	} {
		if got := FlagsUnread(x.code, 0x1000); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
