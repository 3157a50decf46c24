package image

import (
	"sync"

	"diagnose/evidence"
	"diagnose/image/object"
)

// Options says how to find a process's files.
type Options struct {
	// Exe overrides the executable's path; "" is what the process names.
	Exe    string
	Finder object.Finder
	// Files, if set, keeps the files open for other processes.
	Files *Files
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
	Mappings Mappings
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

	byAddress moduleRanges
	// loadOrder is the dynamic linker's; Modules when it could not be read.
	loadOrder []*Module
	// opened are the files to close.
	opened []*loadedFile
	// stackLimit is RLIMIT_STACK, 0 when it is not known (cores).
	stackLimit uint64

	mu    sync.Mutex
	found []evidence.Limit // guarded by mu

	names        namer
	threadLocals threadLocals

	regionsOnce sync.Once
	regions     *regions
}

// newProcess makes a process of which nothing is known.
func newProcess(opts Options) *Process {
	return &Process{options: opts, Failing: -1, names: namer{mangled: opts.NoDemangle}}
}

// ReadMemory implements Memory.
func (p *Process) ReadMemory(addr evidence.Addr, b []byte) (int, error) {
	return p.memory.ReadMemory(addr, b)
}

// MappingAt returns the mapping that holds addr; nil if none does.
func (p *Process) MappingAt(addr evidence.Addr) *Mapping {
	if i := p.Mappings.index(addr); i >= 0 {
		return &p.Mappings[i]
	}
	return nil
}

// FailingThread returns the thread that failed; nil if none did.
func (p *Process) FailingThread() *Thread {
	if p.Failing < 0 || p.Failing >= len(p.Threads) {
		return nil
	}
	return &p.Threads[p.Failing]
}

// ModuleAt returns the object mapped at addr; nil if none is.
func (p *Process) ModuleAt(addr evidence.Addr) *Module { return p.byAddress.moduleAt(addr) }

// SymbolAt returns the ELF symbol that covers addr, or the function of Go code without symbols.
func (p *Process) SymbolAt(addr evidence.Addr) (Symbol, bool) {
	return p.names.symbolAt(p.ModuleAt(addr), addr)
}

// SymbolNamed looks up an ELF symbol by its mangled name in all modules, in
// load order. Thread-local symbols have no address and are not found.
func (p *Process) SymbolNamed(name string) (Symbol, bool) {
	return p.names.symbolNamed(p.loadOrder, name)
}

// Symbolize names a pc: the inline chain, innermost first, the physical
// function last. There is always at least one site, if only with its pc. The
// reasons for missing names are added to the process's limits, once per module.
// The result is shared: it must not be changed.
func (p *Process) Symbolize(pc evidence.Addr, how Lookup) []SymbolizedCall {
	return p.names.callsAt(p.ModuleAt(how.Address(pc)), pc, how)
}

// ThreadLocal returns the address of a thread's copy of a module's thread-local
// block, found through the dynamic thread vector (Drepper, "ELF Handling For
// Thread-Local Storage", section 3).
func (p *Process) ThreadLocal(t *Thread, m *Module) (evidence.Addr, error) {
	return p.threadLocals.block(t, m)
}

// ModuleOfLink returns the object that a struct link_map of the dynamic linker's list describes; 0: the executable, which has none if it is
// statically linked. nil: the list does not have it.
func (p *Process) ModuleOfLink(node evidence.Addr) *Module {
	if node == 0 {
		return p.Exe
	}
	for m, at := range p.threadLocals.nodes {
		if at == node {
			return m
		}
	}
	return nil
}

// Place describes an address.
func (p *Process) Place(addr evidence.Addr) evidence.Place {
	d := placeDescription{process: p, place: evidence.Place{Addr: addr, Proof: evidence.FromCore}}
	d.describe()
	return d.place
}

// memoryRegions finds the purposes of the mappings without a file at the first call.
func (p *Process) memoryRegions() *regions {
	p.regionsOnce.Do(func() { p.regions = findRegions(p) })
	return p.regions
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
	for _, f := range p.opened {
		if err := f.release(); err != nil && first == nil {
			first = err
		}
	}
	p.opened = nil
	return first
}
