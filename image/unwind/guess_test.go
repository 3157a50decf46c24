package unwind

import (
	"testing"

	"diagnose/image/x86"
)

func TestEndsInCall(t *testing.T) {
	for name, test := range map[string]struct {
		code string
		want bool
	}{
		"call rel32":             {"\x90\x90\xe8\x00\x00\x00\x00", true},
		"call rax":               {"\x90\x90\x90\x90\x90\xff\xd0", true},
		"call r8":                {"\x90\x90\x90\x90\x41\xff\xd0", true},
		"call [rax]":             {"\x90\x90\x90\x90\x90\xff\x10", true},
		"call [rsp]":             {"\x90\x90\x90\x90\xff\x14\x24", true},
		"call [rax+8]":           {"\x90\x90\x90\x90\xff\x50\x08", true},
		"call [rsp+8]":           {"\x90\x90\x90\xff\x54\x24\x08", true},
		"call [rip+x]":           {"\x90\xff\x15\x00\x00\x00\x00", true},
		"call [rax+disp32]":      {"\x90\xff\x90\x00\x01\x00\x00", true},
		"call [rsp+disp32]":      {"\xff\x94\x24\x00\x01\x00\x00", true},
		"call [rax*8+disp32]":    {"\xff\x14\xc5\x00\x01\x00\x00", true},
		"jmp rax":                {"\x90\x90\x90\x90\x90\xff\xe0", false},
		"nops":                   {"\x90\x90\x90\x90\x90\x90\x90", false},
		"a call that is longer":  {"\x90\x90\x90\x90\x90\xff\x50", false},
		"a call that is shorter": {"\x90\x90\xff\xd0\x90\x90\x90", false},
	} {
		if got := endsInCall([]byte(test.code)); got != test.want {
			t.Errorf("%s: endsInCall(% x) = %v", name, test.code, got)
		}
	}
}

func TestFrameState(t *testing.T) {
	for name, test := range map[string]struct {
		code  string
		want  string
		depth int64
	}{
		"entry":             {"", "rsp", 8},
		"push":              {"\x53", "rsp", 16},
		"push, sub":         {"\x53\x48\x83\xec\x20", "rsp", 48},
		"frame pointer":     {"\x55\x48\x89\xe5\x48\x83\xec\x40", "rbp", 16},
		"realigned":         {"\x55\x48\x89\xe5\x48\x83\xe4\xc0", "rbp", 16},
		"leave":             {"\x55\x48\x89\xe5\xc9", "rsp", 8},
		"lea rsp":           {"\x48\x8d\x64\x24\xf0", "rsp", 24},
		"after an epilogue": {"\x53\x48\x83\xec\x20\x48\x83\xc4\x20\x5b\xc3", "rsp", 48},
		"alloca":            {"\x48\x29\xc4", "", 0},
	} {
		s := newFrameState()
		body := s
		insts, bad := x86.Function([]byte(test.code), 0x1000)
		if bad != 0 {
			t.Errorf("%s: %d undecodable bytes", name, bad)
		}
		for i := range insts {
			if s.apply(&insts[i]) {
				body = s
			}
			if insts[i].Flow == x86.FlowReturn {
				s = body
			}
		}
		r, ok := s.row()
		if ok != (test.want != "") || ok && (r.cfa.reg.String() != test.want || r.cfa.offset != test.depth) {
			t.Errorf("%s: CFA %v%+d, %v; want %s%+d", name, r.cfa.reg, r.cfa.offset, ok, test.want, test.depth)
		}
	}
}
