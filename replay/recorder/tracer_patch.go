package recorder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// addPatches appends to the table the system calls in the process's code that the engine does
// not know yet.
func (r *recording) addPatches(tid int, memory *ptrace.Memory, list []record.Mapping) error {
	var key string
	if r.control.PatchCount == 0 {
		if key = codeKey(list); key != "" {
			if known, ok := knownPatches.Load(key); ok {
				return r.repeat(tid, memory, known.(*patchTable))
			}
		}
	}
	var table bytes.Buffer
	before := len(r.manifest.Limits)
	files, err := r.codeOf(tid, list)
	if err != nil {
		return err
	}
	for _, file := range files {
		m := file.mapping
		patches, random, err := file.patches(memory)
		if err != nil {
			r.limit("site", fmt.Sprintf("the system calls of %s are not intercepted: %v", m.Path, err))
			continue
		}
		if random > 0 && !knownRandom(string(m.Path)) {
			r.limit("random", fmt.Sprintf("%s may take random numbers from the processor (rdrand, rdseed: %d instructions), which no recording has", m.Path, random))
		}
		for i := range patches {
			switch patches[i].Kind {
			case agent.PatchTrap:
				r.traps[patches[i].Resume-2] = true
			case agent.PatchTSCTrap:
				if r.counterTraps {
					continue // it holds for the whole process
				}
				r.counterTraps = true
			}
			if err := binary.Write(&table, binary.LittleEndian, &patches[i]); err != nil {
				return err
			}
		}
	}
	if key != "" {
		if knownTables.Add(1) <= mostKnownTables {
			knownPatches.Store(key, &patchTable{table.Bytes(), maps.Clone(r.traps), r.counterTraps, r.manifest.Limits[before:]})
		}
	}
	return r.storePatches(tid, memory, table.Bytes())
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
		file, err := statFile(string(m.Path))
		if err != nil || m.File == nil || file.Inode != m.File.Inode {
			return ""
		}
		fmt.Fprintf(&b, "%x %x %q %v\n", uint64(m.Start), uint64(m.End), m.Path, file)
	}
	return b.String()
}

// repeat gives a process the table of another one.
func (r *recording) repeat(tid int, memory *ptrace.Memory, known *patchTable) error {
	r.traps, r.counterTraps = maps.Clone(known.traps), known.counterTraps
	for _, l := range known.limits {
		r.limit(l.Kind, l.Text)
	}
	return r.storePatches(tid, memory, known.table)
}

func (r *recording) isAgent(m *record.Mapping) bool {
	return m.File != nil && m.File.Inode == r.run.library.Inode && m.File.Device == r.run.library.Device
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

// storePatches appends to the table in the process and to the one on disk.
func (r *recording) storePatches(tid int, memory *ptrace.Memory, table []byte) error {
	size := uint64(binary.Size(agent.RawSitePatch{}))
	at := agent.EngineSites + uint64(r.control.PatchCount)*size
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
	r.control.PatchCount += uint32(uint64(len(table)) / size)
	if r.run.quiet() {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(r.path(), record.SitesName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
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
