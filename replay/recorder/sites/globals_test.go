package sites

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"diagnose/image/object"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// TestGlobals has instructions that name variables: each form, forms that do not count, and
// places where a jump is impossible.
func TestGlobals(t *testing.T) {
	const data = "\n.data\nv: .quad 1,2,3,4\n.bss\n.balign 8\nw: .zero 8\n.section .rodata\nr: .quad 5\n"
	for _, c := range []struct{ name, text, want string }{
		{"load", "f: mov v(%rip),%rax\n ret", "1 of 1: 0+7@3"},
		{"store of a constant", "f: movl $7,w(%rip)\n ret", "1 of 1: 0+10@2"},
		{"a byte, and vectors", "f: incb v(%rip)\n movups v(%rip),%xmm0\n ret", "2 of 2: 0+6@2 6+7@3"},
		{"locked", "f: lock addl $1,v(%rip)\n ret", "1 of 1: 0+8@3"},
		{"no access", "f: lea v(%rip),%rax\n mov r(%rip),%rcx\n mov %fs:40,%rdx\n mov 8(%rax),%rcx\n ret", "0 of 0:"},
		{"through the linker's table", "f: call *g@GOTPCREL(%rip)\n ret\n.globl g\ng: ret", "0 of 0:"},
		{"something jumps past a prefix", "f: je .+3\n lock addl $1,v(%rip)\n ret", "0 of 1:"},
		{"a pointer that is used", "f: mov v(%rip),%rax\n mov (%rax),%eax\n ret", "1 of 1: 0+7@3 after"},
		{"a call", "f: mov v(%rip),%rdi\n call f\n ret", "1 of 1: 0+7@3 after"},
		{"another access comes first", "f: mov v(%rip),%rax\n mov w(%rip),%rcx\n mov (%rax),%eax\n ret", "2 of 2: 0+7@3 7+7@3 after"},
		{"something jumps after it", "f: mov v(%rip),%rax\n1: mov (%rax),%rax\n test %rax,%rax\n jne 1b\n ret", "1 of 1: 0+7@3"},
		{"beside a system call, which moves none of them", "f: mov v(%rip),%rax\n syscall\n mov w(%rip),%rcx\n ret", "2 of 2: 0+7@3 9+7@3"},
		{"code that does not decode", "f: mov v(%rip),%rax\n.byte 0x06\n ret", "0 of 0:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := object.Open(assembled(t, ".text\n.type f, @function\n"+c.text+data))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			found, err := findGlobals(f)
			if err != nil {
				t.Fatal(err)
			}
			calls, err := FindSites(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			base := uint64(0)
			if s := f.Section(".text"); s != nil {
				base = s.Addr
			}
			sites := found.apart(calls.Sites)
			got := fmt.Sprintf("%d of %d:", len(sites), found.all)
			for _, s := range sites {
				got += fmt.Sprintf(" %d+%d@%d", s.at-base, len(s.code), s.relative)
				if s.after {
					got += " after"
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// An object that calls its own points is left alone.
func TestGlobalsInstrumented(t *testing.T) {
	const code = ".text\nf: mov v(%rip),%rax\n ret\n.data\nv: .quad 1\n.section .rodata\n.asciz \"NAME\"\n"
	for name, want := range map[string]int{"diagnose_point": 1, "diagnose_point_within": 0} {
		f, err := object.Open(assembled(t, strings.Replace(code, "NAME", name, 1)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if found, err := findGlobals(f); err != nil || len(found.sites) != want {
			t.Errorf("%s: %d sites, want %d: %v", name, len(found.sites), want, err)
		}
	}
}

// The limit on code is one on all of an object's code: a linker may make a small segment and a large one, as node's does.
func TestMostCode(t *testing.T) {
	path := assembled(t, ".text\n.type f, @function\nf: mov v(%rip),%rax\n ret\n.zero 8192\n.data\nv: .quad 1\n")
	memory, err := ptrace.OpenMemory(os.Getpid()) // which has nothing at the mapping below
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for most, searched := range map[uint64]bool{4096: false, 0: true, 1 << 20: true} {
		table := &pointTable{}
		m := &record.Mapping{Start: 0x1000, End: 0x2000, Offset: 0x1000, Permissions: "r-xp", Path: record.Text(path)}
		err := table.addMapping(m, memory, most)
		if (table.all == 1) != searched || (err != nil) != searched {
			t.Errorf("with at most %d bytes: %d accesses, error %v; want that it is searched: %v", most, table.all, err, searched)
		}
	}
}
