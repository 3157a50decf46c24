package image

import (
	"debug/elf"
	"path/filepath"

	"diagnose/evidence"
)

// findExe returns the module that holds the program's entry point or program
// headers.
func (p *Process) findExe() *Module {
	for _, kind := range []uint64{auxPHDR, auxEntry} {
		addr, ok := p.Auxv[kind]
		if !ok {
			continue
		}
		for _, m := range p.Modules {
			if m.Contains(evidence.Addr(addr)) {
				return m
			}
		}
	}
	name := p.execName()
	for _, m := range p.Modules {
		if name != "" && m.Path == name {
			return m
		}
	}
	// Without an auxiliary vector the kernel's short name is left.
	const shortName = 15 // TASK_COMM_LEN less the NUL
	for _, m := range p.Modules {
		if base := filepath.Base(m.Path); p.Program.Command != "" && base[:min(len(base), shortName)] == p.Program.Command {
			return m
		}
	}
	return nil
}

// execName is the path that the program was started by. It may be relative, and
// is empty when memory no longer holds it.
func (p *Process) execName() string {
	const longest = 4096 // PATH_MAX
	addr := p.Auxv[auxExecFn]
	if addr == 0 {
		return ""
	}
	name, whole, err := CString(p.memory, evidence.Addr(addr), longest)
	if err != nil || !whole {
		return ""
	}
	return name
}

// modulesFromLinkMap is for cores without NT_FILE: the executable comes from
// the auxiliary vector, the libraries from the dynamic linker's list.
func (p *Process) modulesFromLinkMap(source *fileSource) *Module {
	exe := p.exeFromAuxv(source)
	if exe == nil {
		return nil
	}
	p.Modules = append(p.Modules, exe)
	for _, entry := range p.linkMap(exe) {
		if entry.name == "" || entry.bias == p.Auxv[auxSysinfoEHDR] {
			continue
		}
		m := &Module{Path: entry.name, process: p, Bias: entry.bias, fileStart: evidence.Addr(entry.bias)}
		if image, err := readELFImage(p.memory, evidence.Addr(entry.bias)); err == nil {
			m.image = image
			m.BuildID = image.buildID(p.memory, entry.bias)
		}
		p.Modules = append(p.Modules, m)
	}
	return exe
}

// exeFromAuxv makes the executable from its program headers in memory.
func (p *Process) exeFromAuxv(source *fileSource) *Module {
	m := &Module{Path: p.execName(), process: p}
	if m.Path == "" {
		m.Path = source.exe
	}
	if m.Path != "" && !filepath.IsAbs(m.Path) && source.beside != "" {
		m.Path = filepath.Join(source.beside, m.Path)
	}
	table := p.Auxv[auxPHDR]
	if table == 0 {
		return nil
	}
	// If memory no longer holds them, the file's headers are used: they are in
	// its first page.
	m.fileStart = evidence.Addr(pageDown(table))
	image, err := readProgramHeaders(p.memory, evidence.Addr(table), int(min(p.Auxv[auxPHNUM], mostHeaders)))
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
	m.BuildID = image.buildID(p.memory, m.Bias)
	return m
}
