package image

import (
	"diagnose/evidence"
	"diagnose/image/object"
)

// addVDSO reads the vDSO from memory, because it has no file.
func (p *Process) addVDSO() {
	const largest = 1 << 20
	addr := evidence.Addr(p.Auxv[auxSysinfoEHDR])
	i := p.mappingBehind(addr)
	if addr == 0 || i == len(p.Mappings) || !p.Mappings[i].Contains(addr) || p.Mappings[i].file() {
		return
	}
	mapping := &p.Mappings[i]
	mapping.Path = "[vdso]"
	p.nameVVAR(i)
	data := make([]byte, min(uint64(mapping.End-addr), largest))
	if _, err := p.memory.ReadMemory(addr, data); err != nil {
		p.Limits = append(p.Limits, evidence.Limit{Subject: "[vdso]", Text: "the vDSO could not be read: " + err.Error()})
		return
	}
	m := &Module{Path: "[vdso]", process: p, ranges: []addrRange{{mapping.Start, mapping.End}}, Start: mapping.Start, End: mapping.End}
	image, err := readELFImage(p.memory, addr)
	if err == nil {
		m.image = image
		m.Bias, _ = image.biasFor(uint64(addr), 0)
		m.Object, err = object.FromBytes("[vdso]", data)
	}
	if err != nil {
		p.Limits = append(p.Limits, evidence.Limit{Subject: "[vdso]", Text: "the vDSO is not usable: " + err.Error()})
		return
	}
	m.BuildID = m.Object.BuildID()
	p.opened = append(p.opened, m.Object)
	p.Modules = append(p.Modules, m)
}

// nameVVAR names the data pages that the kernel puts before the vDSO
// (arch/x86/entry/vdso/vma.c).
func (p *Process) nameVVAR(vdso int) {
	for i := vdso - 1; i >= 0; i-- {
		m := &p.Mappings[i]
		if m.End != p.Mappings[i+1].Start || m.Path != "" || m.Perms != "r--" && m.Perms != maybeReadable {
			return
		}
		m.Path = "[vvar]"
	}
}
