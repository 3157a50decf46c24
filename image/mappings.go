package image

import (
	"debug/elf"
	"sort"

	"diagnose/evidence"
)

// unknownPerms stands for permissions that the core does not record.
const unknownPerms = "???"

// maybeReadable stands for the permissions of memory that a debugger's core
// shows as neither writable nor executable: gdb marks every segment as readable
// (gdb/gcore.c, make_output_phdrs).
const maybeReadable = "?--"

func permsOf(flags uint32) string {
	p := []byte("---")
	for i, f := range []elf.ProgFlag{elf.PF_R, elf.PF_W, elf.PF_X} {
		if elf.ProgFlag(flags)&f != 0 {
			p[i] = "rwx"[i]
		}
	}
	return string(p)
}

// sortFiles brings NT_FILE's entries into address order and drops overlaps.
func sortFiles(files []fileMapping) []fileMapping {
	byAddr := func(i, j int) bool { return files[i].start < files[j].start }
	if !sort.SliceIsSorted(files, byAddr) {
		sort.SliceStable(files, byAddr)
	}
	kept, last := files[:0], uint64(0)
	for _, f := range files {
		if f.start >= last {
			kept, last = append(kept, f), f.end
		}
	}
	return kept
}

// coreMappings joins the segments, which have permissions, with the files,
// which have names. Both are in address order without overlaps. byDebugger says
// that a debugger wrote the core.
func coreMappings(loads []programHeader, files []fileMapping, byDebugger bool) Mappings {
	list := make(Mappings, 0, len(loads)+8)
	next := 0 // the first file that ends past pos
	pos := uint64(0)
	fill := func(end uint64, perms string) {
		for pos < end {
			for next < len(files) && files[next].end <= pos {
				next++
			}
			stop, source := end, fileMapping{}
			if next < len(files) && files[next].start < end {
				if f := files[next]; f.start <= pos {
					source, stop = f, min(end, f.end)
				} else {
					stop = f.start
				}
			}
			m := Mapping{Start: evidence.Addr(pos), End: evidence.Addr(stop), Perms: perms,
				Path: source.path, Offset: fileOffset(source, pos)}
			if byDebugger && perms == "r--" && m.Path == "" {
				m.Perms = maybeReadable
			}
			if perms != unknownPerms || m.Path != "" {
				list = append(list, m)
			}
			pos = stop
		}
	}
	for i := range loads {
		fill(loads[i].vaddr, unknownPerms)
		fill(loads[i].end(), permsOf(loads[i].flags))
	}
	if n := len(files); n > 0 {
		fill(files[n-1].end, unknownPerms)
	}
	return list
}

func fileOffset(f fileMapping, addr uint64) uint64 {
	if f.path == "" {
		return 0
	}
	return f.offset + (addr - f.start)
}
