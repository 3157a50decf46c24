package image

import (
	"path/filepath"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// Static reports whether the program is statically linked: the kernel loaded no dynamic linker for it, which the auxiliary
// vector says (AT_BASE, fs/binfmt_elf.c). False where that is not known.
func (p *Process) Static() bool {
	base, known := p.Auxv[auxBase]
	return known && base == 0 && p.Exe != nil && !linkerName(filepath.Base(p.Exe.Path))
}

// Musl reports whether the dynamic linker is musl's, which is its C library too. glibc's is libc.so.6.
func (p *Process) Musl() bool { return slices.ContainsFunc(p.Modules, isMusl) }

func isMusl(m *Module) bool {
	base := filepath.Base(m.Path)
	return base == "libc.so" || strings.HasPrefix(base, "ld-musl-")
}

// EntryPoint returns the address at which the kernel starts the program, or that the dynamic linker jumps to (AT_ENTRY); 0 where it is not known.
func (p *Process) EntryPoint() evidence.Addr { return evidence.Addr(p.Auxv[auxEntry]) }

// linkerName reports whether a file is named as dynamic linkers are. One that was started as a program has no AT_BASE either.
func linkerName(name string) bool {
	return strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so")
}

// archive reports whether code without a line is a library's that was linked into the module: the program is statically linked,
// and its main function has lines.
func (m *Module) archive(info *debuginfo.Info) bool {
	if m.process == nil || m != m.process.Exe || info == nil || !m.process.Static() {
		return false
	}
	m.mainOnce.Do(func() { m.mainHasLine = m.findMain(info) })
	return m.mainHasLine
}

// findMain reports whether the debug information describes the program's main function. In Rust the symbol main is that of a
// function without lines, which the compiler makes.
func (m *Module) findMain(info *debuginfo.Info) bool {
	if s, ok := m.Object.SymbolNamed("main"); ok {
		if _, ok := m.positionAt(info, s.Value); ok {
			return true
		}
	}
	found := false
	err := recovered(func() (err error) { found, err = info.HasFunction("main"); return err })
	return found && err == nil
}
