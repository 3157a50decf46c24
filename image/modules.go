package image

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"

	"diagnose/evidence"
	"diagnose/image/object"
)

// Types of auxiliary vector entries (linux/auxvec.h).
const (
	auxPHDR        = 3
	auxPHNUM       = 5
	auxEntry       = 9
	auxRandom      = 25
	auxExecFn      = 31
	auxSysinfoEHDR = 33
)

// loadModules finds the objects in the mappings, opens their files and puts
// them in order. memory must serve what the process's source itself holds.
func (p *Process) loadModules(source *fileSource) {
	p.Modules = groupMappings(p.memory, p.Mappings, p)
	exe := p.findExe(source)
	if len(p.Modules) == 0 {
		exe = p.modulesFromLinkMap(source)
	}
	p.Exe = exe
	p.openObjects(source)
	p.Modules = p.placeModules()
	p.addVDSO()
	sort.Slice(p.Modules, func(i, j int) bool { return p.Modules[i].Start < p.Modules[j].Start })
	p.indexModules()
	p.orderModules()
	if p.Exe != nil {
		p.Program.Exe, p.Program.BuildID = p.Exe.Path, p.Exe.BuildID
	}
}

// groupMappings makes a module of the mappings of one file that one ELF
// header describes.
func groupMappings(m Memory, mappings []Mapping, p *Process) []*Module {
	var list []*Module
	open := map[string]*Module{} // the module that a path's next mapping may belong to
	for i := range mappings {
		mapping := &mappings[i]
		if !mapping.file() || strings.HasPrefix(mapping.Path, "/dev/") {
			continue
		}
		current := open[mapping.Path]
		if current == nil || !current.claims(mapping) {
			next := newModule(m, mapping, p)
			if next == nil {
				continue // a part that the program mapped for itself
			}
			list, current = append(list, next), next
			open[mapping.Path] = next
		}
		current.ranges = append(current.ranges, addrRange{mapping.Start, mapping.End})
	}
	kept := list[:0]
	for _, module := range list {
		if module.mappedToRun(mappings) {
			kept = append(kept, module)
		}
	}
	return kept
}

// newModule begins a module at a mapping; nil when it holds no ELF header.
// Where the header cannot be read, an executable mapping is a module too.
func newModule(m Memory, mapping *Mapping, p *Process) *Module {
	module := &Module{Path: mapping.Path, process: p, fileStart: mapping.Start, fileOffset: mapping.Offset}
	if mapping.Offset != 0 {
		if !mapping.Executable() {
			return nil
		}
		return module
	}
	image, err := readELFImage(m, mapping.Start)
	if err != nil {
		if _, unreadable := asMemoryError(err); unreadable {
			return module
		}
		return nil
	}
	if bias, ok := image.biasFor(uint64(mapping.Start), 0); ok {
		module.image, module.Bias = image, bias
		module.BuildID = image.buildID(m, bias)
	}
	return module
}

// claims reports whether the mapping is part of the module, which a mapping
// of the file's start need not be: a file may be loaded or read twice.
func (m *Module) claims(mapping *Mapping) bool {
	if m.image == nil {
		return mapping.Offset != 0
	}
	return mapping.Offset != 0 && m.ranges[len(m.ranges)-1].end == mapping.Start ||
		m.image.covers(m.Bias, uint64(mapping.Start), mapping.Offset)
}

// mappedToRun tells loaded objects from files that were mapped to be read,
// as a symbolizer inside the process does with its own executable.
func (m *Module) mappedToRun(mappings []Mapping) bool {
	if m.image != nil && !m.image.executable() {
		return true
	}
	for _, r := range m.ranges {
		i := sort.Search(len(mappings), func(i int) bool { return mappings[i].End > r.start })
		if i < len(mappings) && (mappings[i].Executable() || mappings[i].Perms == unknownPerms) {
			return true
		}
	}
	return false
}

// findExe returns the module that holds the program's entry point or program
// headers.
func (p *Process) findExe(source *fileSource) *Module {
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

// execName is the path that the program was started by; may be relative, or
// empty when memory has lost it.
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

// openObjects opens each module's file, several at a time: a program with
// hundreds of libraries spends most of its start here.
func (p *Process) openObjects(source *fileSource) {
	type result struct {
		file   *object.File
		limits []evidence.Limit
		err    error
	}
	results := make([]result, len(p.Modules))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, m := range p.Modules {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			r := &results[i]
			r.file, r.limits, r.err = source.open(m, m == p.Exe)
			<-slots
		}()
	}
	wait.Wait()
	var absent []*Module
	var reason error
	for i, r := range results {
		p.Limits = append(p.Limits, r.limits...)
		if r.file != nil {
			p.opened = append(p.opened, r.file)
			p.Modules[i].Object, p.Modules[i].File = r.file, r.file.Path()
		} else if len(r.limits) == 0 {
			absent, reason = append(absent, p.Modules[i]), r.err
		}
	}
	p.tellAbsent(absent, reason)
}

// tellAbsent says which objects have no file, in one limit.
func (p *Process) tellAbsent(absent []*Module, reason error) {
	if len(absent) == 0 {
		return
	}
	const named = 5
	names := ""
	severe := false
	for i, m := range absent {
		severe = severe || m == p.Exe
		if i < named {
			names += ", " + m.name()
		}
	}
	names = names[2:]
	if more := len(absent) - named; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	text := fmt.Sprintf("no file was found for %s, so there are no names for addresses in it", names)
	if len(absent) > 1 {
		text = fmt.Sprintf("no files were found for %d objects, so there are no names for addresses in them: %s", len(absent), names)
	} else if reason != nil {
		text += ": " + printable(reason.Error())
	}
	p.Limits = append(p.Limits, evidence.Limit{Subject: absent[0].Path, Text: text, Severe: severe})
}

// open returns the first candidate that is what the process had mapped. If
// there is none, limits tell of files that do not match, and err why no other
// was found.
func (s *fileSource) open(m *Module, exe bool) (file *object.File, limits []evidence.Limit, err error) {
	var mismatch []evidence.Limit
	tried := map[string]bool{}
	for _, c := range s.candidates(m, exe) {
		if tried[c.path] {
			continue
		}
		tried[c.path] = true
		file, openErr := s.openCandidate(c)
		if openErr != nil {
			if err == nil {
				err = openErr
			}
			continue
		}
		reason, doubt := m.compare(file)
		if reason == "" {
			return file, doubt, nil
		}
		file.Close()
		mismatch = append(mismatch, evidence.Limit{Subject: m.Path, Severe: true, Text: reason})
	}
	if len(mismatch) > 0 {
		return nil, mismatch[:1], nil
	}
	return nil, nil, err
}

// compare says why a file is not what the process had mapped, "" if it is;
// doubt says what could not be compared.
func (m *Module) compare(f *object.File) (reason string, doubt []evidence.Limit) {
	const off = "; its symbols and bytes are not used"
	id := f.BuildID()
	switch {
	case m.BuildID != "" && id == m.BuildID:
		return "", nil
	case m.BuildID != "" && id == "":
		return fmt.Sprintf("%s has no build-id, but the process ran %s with build-id %s%s", printable(f.Path()), m.name(), m.BuildID, off), nil
	case m.BuildID != "":
		return fmt.Sprintf("%s has build-id %s, but the process ran %s with build-id %s%s", printable(f.Path()), id, m.name(), m.BuildID, off), nil
	case m.image != nil && !m.image.sameSegments(f):
		return fmt.Sprintf("%s (build-id %s) has other segments than the %s that the process ran (build-id not in memory)%s",
			printable(f.Path()), orNone(id), m.name(), off), nil
	case m.image != nil && id == "":
		return "", nil
	}
	return "", []evidence.Limit{{Subject: m.Path, Text: fmt.Sprintf(
		"the process's memory lacks the build-id of %s; %s is taken for it unchecked", m.name(), printable(f.Path()))}}
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// placeModules fixes each module's bias and ranges, and drops those that no
// headers describe and no file was found for.
func (p *Process) placeModules() []*Module {
	kept := p.Modules[:0]
	for _, m := range p.Modules {
		if m.image == nil && m.Object != nil {
			image := imageOfFile(m.Object)
			if bias, ok := image.biasFor(uint64(m.fileStart), m.fileOffset); ok {
				m.image, m.Bias = image, bias
			}
		}
		if m.BuildID == "" && m.Object != nil {
			m.BuildID = m.Object.BuildID()
		}
		m.addUnnamedParts(p.Mappings)
		if len(m.ranges) > 0 {
			m.Start, m.End = m.ranges[0].start, m.ranges[len(m.ranges)-1].end
			kept = append(kept, m)
		}
	}
	return kept
}

// addUnnamedParts adds the mappings without a name that the segments cover:
// .bss, and everything when the core names no files.
func (m *Module) addUnnamedParts(mappings []Mapping) {
	if m.image == nil {
		return
	}
	for _, h := range m.image.loads {
		low, high := m.Bias+pageDown(h.vaddr), m.Bias+pageDown(h.end()+pageSize-1)
		if low > high || high > canonicalEnd {
			continue
		}
		i := sort.Search(len(mappings), func(i int) bool { return uint64(mappings[i].End) > low })
		for ; i < len(mappings) && uint64(mappings[i].Start) < high; i++ {
			if mappings[i].Path != "" {
				continue
			}
			start, end := max(low, uint64(mappings[i].Start)), min(high, uint64(mappings[i].End))
			m.ranges = append(m.ranges, addrRange{evidence.Addr(start), evidence.Addr(end)})
		}
	}
	m.ranges = joinRanges(m.ranges)
}

// joinRanges sorts ranges and merges those that touch.
func joinRanges(list []addrRange) []addrRange {
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	joined := list[:0]
	for _, r := range list {
		if n := len(joined); n > 0 && r.start <= joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, r.end)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// addVDSO reads the kernel's own object out of memory, for it has no file.
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
		if m.End != p.Mappings[i+1].Start || m.Path != "" || m.Perms != "r--" {
			return
		}
		m.Path = "[vvar]"
	}
}

// indexModules makes ModuleAt a binary search.
func (p *Process) indexModules() {
	for _, m := range p.Modules {
		for _, r := range m.ranges {
			p.ranges = append(p.ranges, moduleRange{r, m})
		}
	}
	sort.SliceStable(p.ranges, func(i, j int) bool { return p.ranges[i].start < p.ranges[j].start })
	kept, last := p.ranges[:0], evidence.Addr(0)
	for _, r := range p.ranges {
		r.start = max(r.start, last)
		if r.start < r.end {
			kept, last = append(kept, r), r.end
		}
	}
	p.ranges = kept
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
	// Where memory is lost the file's own headers serve: they are in its
	// first page.
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
