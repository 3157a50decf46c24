package collect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"diagnose/fleet/collect/corestream"
	"diagnose/fleet/collect/spool"
)

const (
	// stackLooked is how much of the stack is searched for return addresses, in bytes.
	stackLooked = 16 << 10
	// framesCompared is how many of them tell crashes apart.
	framesCompared = 4
	// auxEntry is AT_ENTRY (linux/auxvec.h): the program's entry point.
	auxEntry = 9
)

// executable is the index in Files of the mapping that has the program's entry point, -1 if none has.
func executable(h *corestream.Head) int { return h.FileAt(h.Auxv[auxEntry]) }

// kindOf says which crashes look like this one: of one executable, of one signal, at one instruction,
// with the same addresses of code at the top of the stack. stack is the memory at the stack
// pointer; nil: it could not be read. An address counts as its file and the offset in it, because
// the kernel loads files at random addresses.
//
// Some of the addresses may be of calls that returned long ago. So crashes with one cause may be
// of different kinds, which costs space. That two causes have one kind is rare; but a process that ended by
// abort stops in the C library, and without its stack it cannot be compared.
func kindOf(h *corestream.Head, program, buildID string, signal int, stack []byte) spool.Kind {
	name := "build-id " + buildID
	if buildID == "" {
		name = "path " + program
	}
	k := spool.Kind{Program: digest(name)}
	exe := executable(h)
	at := h.FileAt(h.Thread.PC)
	inProgram := at >= 0 && exe >= 0 && h.Files[at].Path == h.Files[exe].Path
	if stack == nil && !inProgram {
		return k
	}
	parts := []string{name, fmt.Sprint(signal), place(h, exe, h.Thread.PC)}
	for ; len(stack) >= 8 && len(parts) < 3+framesCompared; stack = stack[8:] {
		addr := binary.LittleEndian.Uint64(stack)
		i := h.FileAt(addr)
		if i < 0 || !h.Executable(addr) || at >= 0 && !inProgram && h.Files[i].Path == h.Files[at].Path {
			continue
		}
		parts = append(parts, place(h, exe, addr))
	}
	k.Signature = digest(parts...)
	return k
}

// place names an address of code independently of where its file was loaded, and where the program, whose
// mapping is exe, is installed.
func place(h *corestream.Head, exe int, addr uint64) string {
	if i := h.FileAt(addr); i >= 0 {
		f := &h.Files[i]
		if exe >= 0 && f.Path == h.Files[exe].Path {
			return fmt.Sprintf("program+%#x", f.Offset+(addr-f.Start))
		}
		return fmt.Sprintf("%s+%#x", f.Path, f.Offset+(addr-f.Start))
	}
	if addr < 1<<16 {
		return fmt.Sprintf("%#x", addr)
	}
	return "no file"
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%q\n", p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
