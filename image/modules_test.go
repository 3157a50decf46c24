package image

import (
	"debug/elf"
	"testing"

	"diagnose/internal/crashtest"
)

// TestFilesMappedToBeRead: an object is distinguished from mappings of its file
// as data, such as those of a symbolizer in the program.
func TestFilesMappedToBeRead(t *testing.T) {
	exe := compileText(t, "reader.c", `
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
int marker = 0x5eed;
int main(int argc, char **argv)
{
	const char *files[] = {argv[0], "/proc/self/exe"};
	struct stat st;
	for (int i = 0; i < 4; i++) {
		int fd = open(files[i % 2], O_RDONLY);
		fstat(fd, &st);
		mmap(0, st.st_size, i < 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, i == 3 ? 4096 : 0);
	}
	*(volatile int *)8 = argc;
}`)
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	found := 0
	for _, m := range p.Modules {
		if m.Path == exe {
			found++
		}
	}
	copies := 0
	for i := range p.Mappings {
		if m := &p.Mappings[i]; m.Path == exe && p.ModuleAt(m.Start) == nil {
			copies++
		}
	}
	if found != 1 || copies < 3 || p.Exe == nil || !p.Exe.Contains(p.Threads[0].Registers.PC()) {
		t.Errorf("%d modules of %s and %d copies, executable %+v", found, exe, copies, p.Exe)
	}
	if v := global(t, p, "marker"); v != 0x5eed {
		t.Errorf("marker is %#x", v)
	}
}

func TestBias(t *testing.T) {
	image := &elfImage{kind: elf.ET_DYN, loads: []programHeader{
		{offset: 0, vaddr: 0x200000, filesz: 0x1800, memsz: 0x1800},
		{offset: 0x1800, vaddr: 0x202800, filesz: 0x3000, memsz: 0x3000, flags: 5},
	}}
	for _, c := range []struct {
		start, offset, want uint64
		ok                  bool
	}{
		{0x7f0000200000, 0, 0x7f0000000000, true},
		{0x7f0000202000, 0x1000, 0x7f0000000000, true},
		{0x7f0000204000, 0x3000, 0x7f0000000000, true},
		{0x7f0000000000, 0x9000, 0, false},
	} {
		if bias, ok := image.biasFor(c.start, c.offset); bias != c.want || ok != c.ok {
			t.Errorf("file offset %#x at %#x: bias %#x %v, want %#x", c.offset, c.start, bias, ok, c.want)
		}
	}
	fixed := &elfImage{kind: elf.ET_EXEC}
	if bias, ok := fixed.biasFor(0x400000, 0); bias != 0 || !ok {
		t.Errorf("a fixed executable has bias %#x", bias)
	}
}
