package evidence

import (
	"encoding/json"
	"testing"
)

func TestShortName(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"main", "main"},
		{"PosixSemaphore::wait()", "PosixSemaphore::wait"},
		{"ns::f<int (*)(char)>(char const*) const", "ns::f<int (*)(char)>"},
		{"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
		{"S::operator()(int) const", "S::operator()"},
		{"S::operator()", "S::operator()"},
		{"g(int)::{lambda(int)#1}::operator()(int) const", "g(int)::{lambda(int)#1}::operator()"},
		{"f(int) [clone .constprop.0]", "f"},
		{"core::option::unwrap_failed", "core::option::unwrap_failed"},
		{"f)", "f)"},
		{")", ")"},
		{"", ""},
	} {
		if got := ShortName(x.in); got != x.want {
			t.Errorf("ShortName(%q) = %q, want %q", x.in, got, x.want)
		}
	}
}

func TestAddr(t *testing.T) {
	for _, a := range []Addr{0, 8, 0x7fffffffffff, ^Addr(0)} {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Addr
		if err := json.Unmarshal(text, &back); err != nil || back != a {
			t.Errorf("%v was written as %s and read as %v, %v", a, text, back, err)
		}
	}
	for _, bad := range []string{"10", "0x", "0xg", "0x11111111111111111", ""} {
		if new(Addr).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q was taken for an address", bad)
		}
	}
}

func TestCanonical(t *testing.T) {
	for a, want := range map[Addr]bool{0: true, 0x7fffffffffff: true, 0x800000000000: false,
		0xffff800000000000: true, 0xffff7fffffffffff: false, 0xdead000000000000: false} {
		if a.Canonical() != want {
			t.Errorf("%v.Canonical() = %v", a, !want)
		}
	}
}

func TestAccessUnion(t *testing.T) {
	for _, x := range []struct{ a, b, want AccessKind }{
		{"", Read, Read}, {Write, "", Write}, {Read, Read, Read}, {Read, Write, ReadWrite},
		{ReadWrite, Read, ReadWrite}, {Execute, Read, Execute}, {Write, Execute, Execute},
	} {
		if got := x.a.Union(x.b); got != x.want {
			t.Errorf("%q with %q is %q, want %q", x.a, x.b, got, x.want)
		}
	}
}
