package sites

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// siteRoom is the size of the patch table in the process.
const siteRoom = agent.EngineThreads - agent.EngineSites

// patches is the table of a process that tells the engine where its code has system calls.
type Patches struct {
	Count        uint32          // of the table's entries
	traps        map[uint64]bool // addresses of ud2 in the place of system calls
	counterTraps bool            // the table says that rdtsc traps
	// Atomics counts the atomic instructions of the objects that have any, if they are patched.
	Atomics []record.PatchedAtomics
}

// patching says how the code of a process is patched.
type Patching struct {
	Library record.File // the engine's, which stays as it is
	File    string      // the file that the table is appended to; empty: none
	Atomics bool        // atomic instructions are patched too
	// tell, unless nil, is called with the progress of a search that takes long.
	Tell func(Analysis)
}

// isTrap reports whether a system call at a pc was replaced by ud2.
func (p *Patches) IsTrap(pc uint64) bool { return p.traps[pc] }

// clone returns the table of a process that is a copy of this one's.
func (p *Patches) Clone() Patches {
	return Patches{Count: p.Count, traps: maps.Clone(p.traps), counterTraps: p.counterTraps, Atomics: slices.Clone(p.Atomics)}
}

// addPatches appends to the table the system calls in the process's code that the engine does
// not know yet. It returns the limits of that, even with an error.
func (p *Patches) Add(tid int, memory *ptrace.Memory, list []record.Mapping, how Patching) (limits []eventlog.Limit, err error) {
	var key string
	if p.Count == 0 && !how.Atomics {
		if key = codeKey(list); key != "" {
			if known, ok := knownPatches.Load(key); ok {
				same := known.(*patchTable)
				p.traps, p.counterTraps = maps.Clone(same.traps), same.counterTraps
				return same.limits, p.storePatches(tid, memory, same.table, how.File)
			}
		}
	}
	if p.traps == nil {
		p.traps = map[uint64]bool{}
	}
	var table bytes.Buffer
	files, err := codeOf(tid, list, how.Library, how.Tell)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		m := file.mapping
		found, random, err := file.patches(memory)
		if err != nil {
			limits = append(limits, eventlog.Limit{Kind: "site", Text: fmt.Sprintf("the system calls of %s are not intercepted: %v", m.Path, err)})
			continue
		}
		if random > 0 && !knownRandom(string(m.Path)) {
			limits = append(limits, eventlog.Limit{Kind: "random",
				Text: fmt.Sprintf("%s may take random numbers from the processor (rdrand, rdseed: %d instructions), which no recording has", m.Path, random)})
		}
		for i := range found {
			switch found[i].Kind {
			case agent.PatchTrap:
				p.traps[found[i].Resume-2] = true
			case agent.PatchTSCTrap:
				if p.counterTraps {
					continue // it holds for the whole process
				}
				p.counterTraps = true
				switch err := ptrace.CounterTraps(); {
				case errors.Is(err, ptrace.ErrCounterDoesNotTrap):
					limits = append(limits, eventlog.Limit{Kind: "counter",
						Text: fmt.Sprintf("%s may read the time-stamp counter where no jump fits, at %#x for example: such reads are not recorded, since %v", m.Path, found[i].At, err)})
				case err != nil:
					return limits, err
				}
			}
			if err := binary.Write(&table, binary.LittleEndian, &found[i]); err != nil {
				return limits, err
			}
		}
	}
	if how.Atomics {
		limits = append(limits, p.addAtomics(files, memory, &table)...)
	}
	if key != "" {
		if knownTables.Add(1) <= mostKnownTables {
			knownPatches.Store(key, &patchTable{table.Bytes(), maps.Clone(p.traps), p.counterTraps, limits})
		}
	}
	return limits, p.storePatches(tid, memory, table.Bytes(), how.File)
}

// addAtomics appends to a table the atomic instructions of code that has not been patched.
func (p *Patches) addAtomics(files []*mappedCode, memory *ptrace.Memory, table *bytes.Buffer) (limits []eventlog.Limit) {
	for _, file := range files {
		if file.err != nil {
			continue // told already
		}
		patched, err := file.atomics(table, memory)
		if err != nil {
			limits = append(limits, eventlog.Limit{Kind: "atomics", Text: fmt.Sprintf("the atomic instructions of %s are not ordered: %v", file.mapping.Path, err)})
		}
		known := patched.Of > 0 || len(patched.LearnedLeft) > 0
		if patched.Any() || known && !slices.ContainsFunc(p.Atomics, func(x record.PatchedAtomics) bool { return x.Path == patched.Path }) {
			p.Atomics = append(p.Atomics, patched)
		}
	}
	return limits
}

// patchTable is the table of a process, reused for processes with the same code at the same
// addresses: one schedule of a hunt, or one run of a program, after another.
type patchTable struct {
	table        []byte
	traps        map[uint64]bool
	counterTraps bool
	limits       []eventlog.Limit
}

// knownPatches has patch tables by codeKey. A table has some 20 KB.
var (
	knownPatches sync.Map
	knownTables  atomic.Int32
)

const mostKnownTables = 256

// codeKey identifies the code of a process and its addresses; empty: not known.
func codeKey(list []record.Mapping) string {
	var b strings.Builder
	for i := range list {
		m := &list[i]
		if m.Permissions[2] != 'x' || m.Path == "" || m.Path[0] != '/' {
			continue
		}
		file, err := StatFile(string(m.Path))
		if err != nil || m.File == nil || file.Inode != m.File.Inode {
			return ""
		}
		fmt.Fprintf(&b, "%x %x %q %v\n", uint64(m.Start), uint64(m.End), m.Path, file)
	}
	return b.String()
}

func isFile(m *record.Mapping, f record.File) bool {
	return m.File != nil && m.File.Inode == f.Inode && m.File.Device == f.Device
}

// knownRandom reports whether an object's results of rdrand are in recordings, or are never
// used: std::random_device is an event, and OpenSSL asks the kernel unless it was built to do
// otherwise (--with-rand-seed=rdcpu).
func knownRandom(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, "libstdc++.") || strings.HasPrefix(name, "libcrypto.")
}

// patches returns the patches for one mapping of code, and how many random instructions it has.
// It returns none for a mapping that has been patched.
func (c *mappedCode) patches(memory *ptrace.Memory) (patches []agent.RawSitePatch, random uint64, err error) {
	if c.err != nil {
		return nil, 0, c.err
	}
	m := c.mapping
	bias, ok := loadBias(c.code.segments, m)
	if !ok {
		return nil, 0, nil // not loaded as an object
	}
	found := c.code
	checked := false // whether it has been patched
	for _, s := range found.Sites {
		// The dynamic linker reads the counter when it starts, before the engine does, and
		// stores the value for its statistics.
		if s.Kind == SiteCounterTrap && strings.HasPrefix(filepath.Base(string(m.Path)), "ld-linux") {
			continue
		}
		at := s.At + bias
		if at < uint64(m.Start) || at+uint64(s.Length) > uint64(m.End) {
			continue
		}
		if !checked && s.Kind != SiteCounterTrap {
			var failed error
			if !s.fits(func(p []byte, at uint64) error {
				_, failed = memory.ReadAt(p, int64(at+bias))
				return failed
			}) {
				return nil, 0, failed
			}
			checked = true
		}
		patches = append(patches, agent.RawSitePatch{At: at, Resume: s.Resume + bias, Kind: uint32(s.Kind), Length: s.Length, Before: s.Before, After: s.After})
	}
	return patches, found.Random, nil
}

// loadBias returns the difference between a loaded object's addresses and those in its file.
func loadBias(segments []codeSegment, m *record.Mapping) (uint64, bool) {
	const page = 4096
	for _, s := range segments {
		if s.Offset/page*page == uint64(m.Offset) {
			return uint64(m.Start) - s.Vaddr/page*page, true
		}
	}
	return 0, false
}

// storePatches appends to the table in the process and to the one in a file, unless that is
// empty.
func (p *Patches) storePatches(tid int, memory *ptrace.Memory, table []byte, file string) error {
	size := uint64(binary.Size(agent.RawSitePatch{}))
	at := agent.EngineSites + uint64(p.Count)*size
	if at+uint64(len(table)) > agent.EngineSites+siteRoom {
		return fmt.Errorf("it has too many system calls")
	}
	if len(table) == 0 {
		return nil
	}
	if _, err := memory.WriteAt(table, int64(at)); err != nil {
		if err := mapSites(tid, at, uint64(len(table))); err != nil {
			return err
		}
		if _, err := memory.WriteAt(table, int64(at)); err != nil {
			return err
		}
	}
	p.Count += uint32(uint64(len(table)) / size)
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(table)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// mapSites maps memory for the table where the engine has none: the rest of a step of 16 MiB.
// Its pages cost nothing until they are written.
func mapSites(tid int, at, length uint64) error {
	const step, page = 16 << 20, 4096
	end := (at + length + step - 1) / step * step
	start := (at + page - 1) / page * page
	got, err := ptrace.SystemCall(tid, unix.SYS_MMAP, start, end-start, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
	if err != nil {
		return err
	}
	if got < 0 && got != -int64(unix.EEXIST) {
		return fmt.Errorf("memory for its table of system calls: %w", unix.Errno(-got))
	}
	return nil
}
