package image

import (
	"sort"
	"strings"

	"diagnose/evidence"
)

// Types of auxiliary vector entries (linux/auxvec.h).
const (
	auxPHDR        = 3
	auxPHNUM       = 5
	auxBase        = 7
	auxEntry       = 9
	auxRandom      = 25
	auxExecFn      = 31
	auxSysinfoEHDR = 33
)

// mostModules bounds the objects; a mapping of a page is enough to name one.
const mostModules = 1 << 14

// loader finds the objects that a process had mapped, and opens their files.
type loader struct {
	process  *Process // the owner of the modules
	memory   Memory
	mappings Mappings
	auxv     map[uint64]uint64
	command  string // the kernel's short name of the program
	source   *fileSource

	modules []*Module
	exe     *Module
	opened  []*loadedFile
	limits  []evidence.Limit
}

// loadModules finds the objects in the mappings, opens their files and puts
// them in order. memory must already serve reads from the process's source.
func (p *Process) loadModules(source *fileSource) {
	l := &loader{process: p, memory: p.memory, mappings: p.Mappings, auxv: p.Auxv, command: p.Program.Command, source: source}
	l.load()
	p.Modules, p.Exe, p.opened = l.modules, l.exe, l.opened
	p.Limits = append(p.Limits, l.limits...)
	p.byAddress = indexModules(p.Modules)
	p.orderModules(linkMap(p.memory, p.Exe))
	if p.Exe != nil {
		p.Program.Exe, p.Program.BuildID = p.Exe.Path, p.Exe.BuildID
	}
}

func (l *loader) load() {
	l.groupMappings()
	l.exe = l.findExe()
	if len(l.modules) == 0 {
		l.exe = l.modulesFromLinkMap()
	}
	l.openObjects()
	l.placeModules()
	l.addVDSO()
	sort.Slice(l.modules, func(i, j int) bool { return l.modules[i].Start < l.modules[j].Start })
}

// groupMappings makes a module of the mappings of one file that one ELF
// header describes.
func (l *loader) groupMappings() {
	var list []*Module
	open := map[string]*Module{} // the module that a path's next mapping may belong to
	for i := range l.mappings {
		mapping := &l.mappings[i]
		if !mapping.file() || strings.HasPrefix(mapping.Path, "/dev/") {
			continue
		}
		current := open[mapping.Path]
		if current == nil || !current.claims(mapping) {
			if len(list) == mostModules {
				l.limits = append(l.limits, evidence.Limit{Code: evidence.LimitManyObjects, Count: mostModules, Severe: true}.Worded())
				break
			}
			next := l.newModule(mapping)
			if next == nil {
				continue // a part that the program itself mapped
			}
			list, current = append(list, next), next
			open[mapping.Path] = next
		}
		current.ranges = append(current.ranges, addrRange{mapping.Start, mapping.End})
	}
	kept := list[:0]
	for _, module := range list {
		if module.mappedToRun(l.mappings) {
			kept = append(kept, module)
		}
	}
	l.modules = kept
}

// newModule begins a module at a mapping; nil when it holds no ELF header. If
// the header cannot be read, an executable mapping is a module too.
func (l *loader) newModule(mapping *Mapping) *Module {
	module := &Module{Path: mapping.Path, process: l.process, fileStart: mapping.Start, fileOffset: mapping.Offset}
	if mapping.Offset != 0 {
		if !mapping.Executable() {
			return nil
		}
		return module
	}
	image, err := readELFImage(l.memory, mapping.Start)
	if err != nil {
		if _, unreadable := asMemoryError(err); unreadable {
			return module
		}
		return nil
	}
	if bias, ok := image.biasFor(uint64(mapping.Start), 0); ok {
		module.image, module.Bias = image, bias
		module.BuildID = image.buildID(l.memory, bias)
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
func (m *Module) mappedToRun(mappings Mappings) bool {
	if m.image != nil && !m.image.executable() {
		return true
	}
	for _, r := range m.ranges {
		i := mappings.endingPast(r.start)
		if i < len(mappings) && (mappings[i].Executable() || mappings[i].Perms == unknownPerms) {
			return true
		}
	}
	return false
}

// placeModules sets each module's bias and ranges. It drops modules with
// neither headers nor a file.
func (l *loader) placeModules() {
	kept := l.modules[:0]
	// Objects do not overlap, so all together they visit each mapping little
	// more than once. Overlapping headers must not multiply that.
	visits := 4 * len(l.mappings)
	for _, m := range l.modules {
		if m.image == nil && m.Object != nil {
			image := imageOfFile(m.Object)
			if bias, ok := image.biasFor(uint64(m.fileStart), m.fileOffset); ok {
				m.image, m.Bias = image, bias
			}
		}
		if m.BuildID == "" && m.Object != nil {
			m.BuildID = m.Object.BuildID()
		}
		visits = m.addUnnamedParts(l.mappings, visits)
		if len(m.ranges) > 0 {
			m.Start, m.End = m.ranges[0].start, m.ranges[len(m.ranges)-1].end
			kept = append(kept, m)
		}
	}
	l.modules = kept
}

// addUnnamedParts adds the mappings without a name that the segments cover:
// .bss, and everything when the core names no files. It visits at most that
// many mappings, and returns how many visits remain.
func (m *Module) addUnnamedParts(mappings Mappings, visits int) int {
	if m.image == nil {
		return visits
	}
	for _, r := range m.image.ranges(m.Bias) {
		i := mappings.endingPast(r.start)
		for ; i < len(mappings) && mappings[i].Start < r.end && visits > 0; i++ {
			visits--
			if mappings[i].Path == "" {
				m.ranges = append(m.ranges, addrRange{max(r.start, mappings[i].Start), min(r.end, mappings[i].End)})
			}
		}
	}
	m.ranges = joinRanges(m.ranges)
	return visits
}

// ranges are the pages that the segments take up, in order and joined.
func (e *elfImage) ranges(bias uint64) []addrRange {
	var list []addrRange
	for _, h := range e.loads {
		low, high := bias+pageDown(h.vaddr), bias+pageDown(h.end()+pageSize-1)
		if low < high && high <= canonicalEnd {
			list = append(list, addrRange{evidence.Addr(low), evidence.Addr(high)})
		}
	}
	return joinRanges(list)
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
