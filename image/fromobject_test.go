package image

import (
	"bytes"
	"debug/elf"
	"testing"

	"diagnose/evidence"
	"diagnose/image/object"
)

// Memory that a core omits is read from the object's file only if the process
// cannot have written it: the file's copy of a relocated constant would be
// false evidence.
func TestFromObject(t *testing.T) {
	exe := compileText(t, "relocated.c", `
const char *const relocated[600] = {"x"};
const int constant[1000] = {1, 2, 3};
int data[2000] = {4};
int main(void) { return data[1] + constant[1] + (relocated[1] != 0); }`, "-fPIE", "-pie", "-Wl,-z,relro,-z,now")
	file, err := object.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	parsed, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer parsed.Close()
	module := &Module{Path: exe, Object: file, End: 1 << 20}
	for name, c := range map[string]struct {
		perms   string
		keeps   bool
		written bool // the core has the written memory, so the rest is unchanged from the file
		read    bool
	}{
		".text":        {"r-x", true, false, true},
		".rodata":      {"r--", true, false, true},
		".data.rel.ro": {"r--", false, false, false},
		".data":        {"rw-", false, false, false},
		".got":         {"r--", false, true, true},
	} {
		s := parsed.Section(name)
		if s == nil {
			t.Fatalf("no section %s", name)
		}
		addr := evidence.Addr(s.Addr)
		if got := module.keeps(addr); got != c.keeps {
			t.Errorf("%s: keeps %v, want %v", name, got, c.keeps)
		}
		page := addr &^ (pageSize - 1)
		m := &coreMemory{core: &elfCore{dumpsWritten: c.written, loads: []programHeader{{vaddr: uint64(page), memsz: 2 * pageSize}}},
			process: &Process{Mappings: []Mapping{{Start: page, End: page + 2*pageSize, Perms: c.perms, Path: exe, Offset: s.Offset - uint64(addr-page)}},
				byAddress: moduleRanges{{addrRange{0, 1 << 20}, module}}}}
		want := make([]byte, 8)
		if _, err := s.ReadAt(want, 0); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 8)
		if n, err := m.ReadMemory(addr, got); (err == nil) != c.read || c.read && !bytes.Equal(got, want) || !c.read && n > 0 {
			t.Errorf("%s: % x, %v; want it read: %v", name, got[:n], err, c.read)
		}
	}
	if module.keeps(1 << 19) {
		t.Error("a page of no segment is the file's")
	}
}
