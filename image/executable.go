package image

import (
	"debug/elf"
	"path/filepath"

	"diagnose/evidence"
)

// findExe returns the module that holds the program's entry point or program
// headers.
func (l *loader) findExe() *Module {
	for _, kind := range []uint64{auxPHDR, auxEntry} {
		addr, ok := l.auxv[kind]
		if !ok {
			continue
		}
		for _, m := range l.modules {
			if m.Contains(evidence.Addr(addr)) {
				return m
			}
		}
	}
	name := l.execName()
	for _, m := range l.modules {
		if name != "" && m.Path == name {
			return m
		}
	}
	// Without an auxiliary vector the kernel's short name is left.
	const shortName = 15 // TASK_COMM_LEN less the NUL
	for _, m := range l.modules {
		if base := filepath.Base(m.Path); l.command != "" && base[:min(len(base), shortName)] == l.command {
			return m
		}
	}
	return nil
}

// execName is the path that the program was started by. It may be relative, and
// is empty when memory no longer holds it.
func (l *loader) execName() string {
	const longest = 4096 // PATH_MAX
	addr := l.auxv[auxExecFn]
	if addr == 0 {
		return ""
	}
	name, whole, err := CString(l.memory, evidence.Addr(addr), longest)
	if err != nil || !whole {
		return ""
	}
	return name
}

// modulesFromLinkMap is for cores without NT_FILE: the executable comes from
// the auxiliary vector, the libraries from the dynamic linker's list.
func (l *loader) modulesFromLinkMap() *Module {
	exe := l.exeFromAuxv()
	if exe == nil {
		return nil
	}
	l.modules = append(l.modules, exe)
	for _, entry := range linkMap(l.memory, exe) {
		if entry.name == "" || entry.bias == l.auxv[auxSysinfoEHDR] {
			continue
		}
		m := &Module{Path: entry.name, process: l.process, Bias: entry.bias, fileStart: evidence.Addr(entry.bias)}
		if image, err := readELFImage(l.memory, evidence.Addr(entry.bias)); err == nil {
			m.image = image
			m.BuildID = image.buildID(l.memory, entry.bias)
		}
		l.modules = append(l.modules, m)
	}
	return exe
}

// exeFromAuxv makes the executable from its program headers in memory.
func (l *loader) exeFromAuxv() *Module {
	m := &Module{Path: l.execName(), process: l.process}
	if m.Path == "" {
		m.Path = l.source.exe
	}
	if m.Path != "" && !filepath.IsAbs(m.Path) && l.source.beside != "" {
		m.Path = filepath.Join(l.source.beside, m.Path)
	}
	table := l.auxv[auxPHDR]
	if table == 0 {
		return nil
	}
	// If memory no longer holds them, the file's headers are used: they are in
	// its first page.
	m.fileStart = evidence.Addr(pageDown(table))
	image, err := readProgramHeaders(l.memory, evidence.Addr(table), int(min(l.auxv[auxPHNUM], mostHeaders)))
	if err != nil || len(image.loads) == 0 {
		return m
	}
	image.kind = elf.ET_DYN
	if image.headerTable != 0 {
		m.Bias = table - image.headerTable
	}
	m.image = image
	m.fileStart = evidence.Addr(m.Bias + pageDown(image.loads[0].vaddr))
	m.fileOffset = pageDown(image.loads[0].offset)
	m.BuildID = image.buildID(l.memory, m.Bias)
	return m
}
