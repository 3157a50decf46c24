package image

import (
	"diagnose/evidence"
	"diagnose/image/object"
)

// addVDSO reads the vDSO from memory, because it has no file.
func (l *loader) addVDSO() {
	const largest = 1 << 20
	addr := evidence.Addr(l.auxv[auxSysinfoEHDR])
	i := l.mappings.index(addr)
	if addr == 0 || i < 0 || l.mappings[i].file() {
		return
	}
	mapping := &l.mappings[i]
	mapping.Path = "[vdso]"
	l.nameVVAR(i)
	data := make([]byte, min(uint64(mapping.End-addr), largest))
	if _, err := l.memory.ReadMemory(addr, data); err != nil {
		l.limits = append(l.limits, evidence.Limit{Code: evidence.LimitVDSO, Subject: "[vdso]", Reason: "the vDSO could not be read: " + err.Error()}.Worded())
		return
	}
	m := &Module{Path: "[vdso]", process: l.process, ranges: []addrRange{{mapping.Start, mapping.End}}, Start: mapping.Start, End: mapping.End}
	image, err := readELFImage(l.memory, addr)
	if err == nil {
		m.image = image
		m.Bias, _ = image.biasFor(uint64(addr), 0)
		m.Object, err = object.FromBytes("[vdso]", data)
	}
	if err != nil {
		l.limits = append(l.limits, evidence.Limit{Code: evidence.LimitVDSO, Subject: "[vdso]", Reason: "the vDSO is not usable: " + err.Error()}.Worded())
		return
	}
	m.BuildID = m.Object.BuildID()
	m.loaded = &loadedFile{object: m.Object}
	l.opened = append(l.opened, m.loaded)
	l.modules = append(l.modules, m)
}

// nameVVAR names the data pages that the kernel puts before the vDSO
// (arch/x86/entry/vdso/vma.c).
func (l *loader) nameVVAR(vdso int) {
	for i := vdso - 1; i >= 0; i-- {
		m := &l.mappings[i]
		if m.End != l.mappings[i+1].Start || m.Path != "" || m.Perms != "r--" && m.Perms != maybeReadable {
			return
		}
		m.Path = "[vvar]"
	}
}
