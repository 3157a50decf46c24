package image

import (
	"sort"
	"sync"

	"diagnose/evidence"
	"diagnose/image/object"
)

// Options says how to find a process's files.
type Options struct {
	// Exe overrides the executable's path; "" is what the process names.
	Exe    string
	Finder object.Finder
	// NoDemangle leaves linkage names as they are.
	NoDemangle bool
	// Progress, if set, is called with a line about each slow step.
	Progress func(string)
}

func (o *Options) progress(text string) {
	if o.Progress != nil {
		o.Progress(text)
	}
}

// Mapping is a range of the address space with one permission and one source.
type Mapping struct {
	Start, End evidence.Addr
	// Perms is "rwx" with dashes; "???" for a file that a core lists without
	// its segment, "?--" if a debugger's core does not show whether the memory
	// was readable.
	Perms string
	// Path is the mapped file or a name in brackets ("[stack]", "[heap]",
	// "[vdso]"), Offset the file offset of Start. Cores name files only; the
	// names in brackets are then derived.
	Path   string
	Offset uint64
	// Missing is how many of its bytes neither the core nor the file holds.
	Missing uint64
}

// Contains reports whether addr is in the mapping.
func (m *Mapping) Contains(addr evidence.Addr) bool { return addr >= m.Start && addr < m.End }

// Readable, Writable and Executable read Perms.
func (m *Mapping) Readable() bool   { return len(m.Perms) > 0 && m.Perms[0] == 'r' }
func (m *Mapping) Writable() bool   { return len(m.Perms) > 1 && m.Perms[1] == 'w' }
func (m *Mapping) Executable() bool { return len(m.Perms) > 2 && m.Perms[2] == 'x' }

func (m *Mapping) size() uint64 { return uint64(m.End - m.Start) }

// file reports whether a file is mapped.
func (m *Mapping) file() bool { return m.Path != "" && m.Path[0] != '[' }

// Thread is a thread of the process.
type Thread struct {
	Ref       evidence.ThreadRef
	Registers Registers
	// Signal is the signal it was given last; nil for none.
	Signal *evidence.Signal
}

// Process is a dead or stopped process. It is safe for concurrent use once
// opened.
type Process struct {
	// Program is complete, except for the number of threads in a truncated
	// core.
	Program evidence.Program
	// Threads in the order of the core; the kernel writes the failing one
	// first. Failing is its index, -1 when no thread failed.
	Threads []Thread
	Failing int
	// Mappings in address order, not overlapping.
	Mappings []Mapping
	// Modules in address order. Exe is the main one, nil when unknown.
	Modules []*Module
	Exe     *Module
	// Auxv holds the auxiliary vector by AT_ type.
	Auxv map[uint64]uint64
	// Limits describe what the process's source lacks.
	Limits []evidence.Limit

	memory  Memory
	options Options
	close   func() error
	forget  func() // nil for a live process
	// coreFile is where the bytes of the core are while the process is open.
	coreFile string

	// ranges are all modules' ranges in address order, without overlaps.
	ranges []moduleRange
	// loadOrder is the dynamic linker's; Modules when it could not be read.
	loadOrder []*Module
	// opened are the files to close.
	opened []*object.File
	// stackLimit is RLIMIT_STACK, 0 when it is not known (cores).
	stackLimit uint64

	mu    sync.Mutex
	found []evidence.Limit // guarded by mu

	names   nameCache
	regions regionCache
	tls     tlsCache
}

type moduleRange struct {
	addrRange
	module *Module
}

// ReadMemory implements Memory.
func (p *Process) ReadMemory(addr evidence.Addr, b []byte) (int, error) {
	return p.memory.ReadMemory(addr, b)
}

// MappingAt returns the mapping that holds addr; nil if none does.
func (p *Process) MappingAt(addr evidence.Addr) *Mapping {
	i := p.mappingBehind(addr)
	if i == len(p.Mappings) || !p.Mappings[i].Contains(addr) {
		return nil
	}
	return &p.Mappings[i]
}

// mappingBehind returns the index of the first mapping that ends past addr.
func (p *Process) mappingBehind(addr evidence.Addr) int {
	return sort.Search(len(p.Mappings), func(i int) bool { return p.Mappings[i].End > addr })
}

// FailingThread returns the thread that failed; nil if none did.
func (p *Process) FailingThread() *Thread {
	if p.Failing < 0 || p.Failing >= len(p.Threads) {
		return nil
	}
	return &p.Threads[p.Failing]
}

// ModuleAt returns the object mapped at addr; nil if none is.
func (p *Process) ModuleAt(addr evidence.Addr) *Module {
	i := sort.Search(len(p.ranges), func(i int) bool { return p.ranges[i].end > addr })
	if i == len(p.ranges) || addr < p.ranges[i].start {
		return nil
	}
	return p.ranges[i].module
}

// CoreFile returns a path by which this process can read the core, unpacked,
// until Close; "" for a live process.
func (p *Process) CoreFile() string { return p.coreFile }

// ForgetPages releases the memory that reading the core has used so far: each
// stack that is read maps sixteen pages (mm/memory.c, do_fault_around), of
// which a walk needs one or two. Another read loads them again.
func (p *Process) ForgetPages() {
	if p.forget != nil {
		p.forget()
	}
}

// Close releases everything and resumes a live process. Nothing obtained from
// the process may be used afterwards.
func (p *Process) Close() error {
	var first error
	if p.close != nil {
		first = p.close()
		p.close = nil
	}
	for _, m := range p.Modules {
		if m.debug != nil && p.opened != nil {
			m.debug.Close()
		}
		if f := m.separate.Swap(nil); f != nil {
			f.Close()
		}
	}
	for _, f := range p.opened {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.opened = nil
	return first
}
