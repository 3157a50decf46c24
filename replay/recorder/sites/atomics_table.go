package sites

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"sync"

	"diagnose/agent"
	"diagnose/image/object"
	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// knownAtomics has the Atomics of object files, by atomicsKey.
var knownAtomics sync.Map

// OrdersItself reports whether an object is one of the C library's. Its atomic instructions are
// inside of calls that other events order.
func OrdersItself(path string) bool {
	name := filepath.Base(path)
	for _, own := range []string{"libc.so", "libc-", "libpthread", "ld-linux"} {
		if strings.HasPrefix(name, own) {
			return true
		}
	}
	return false
}

// atomicsKey identifies a file's contents and its learned sites.
type atomicsKey struct {
	fileIdentity
	learned [sha256.Size]byte
}

// cachedAtomics is FindAtomics with the learned sites, once for each file of this process.
func cachedAtomics(path string, identity fileIdentity, buildID string) (*Atomics, error) {
	learned := knownSites.learned(buildID)
	key := atomicsKey{identity, sha256.Sum256(encodeLearned(learned))}
	if known, ok := knownAtomics.Load(key); ok {
		return known.(*Atomics), nil
	}
	f, err := object.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := FindAtomics(context.Background(), f, learned)
	if err != nil {
		return nil, err
	}
	found.keep()
	knownAtomics.Store(key, &found)
	return &found, nil
}

// keep copies what instructions refer to of the file.
func (a *Atomics) keep() {
	for i := range a.Windows {
		for j := range a.Windows[i].Moved {
			inst := &a.Windows[i].Moved[j]
			inst.Bytes = bytes.Clone(inst.Bytes)
		}
	}
}

// atomics appends the entries for the atomic instructions of a mapping to a table.
func (c *mappedCode) atomics(table *bytes.Buffer, memory *ptrace.Memory) (patched record.PatchedAtomics, err error) {
	m := c.mapping
	patched.Path = m.Path
	bias, ok := loadBias(c.code.segments, m)
	if !ok || OrdersItself(string(m.Path)) {
		return patched, nil
	}
	found, err := cachedAtomics(c.path, c.identity, c.code.buildID)
	if err != nil {
		return patched, err
	}
	patched.Of = found.Total()
	patched.LearnedLeft = addressesOf(found.LearnedLeft)
	for i := range found.Windows {
		w := &found.Windows[i]
		start, end := w.Start+bias, w.End+bias
		if start < uint64(m.Start) || end > uint64(m.End) {
			continue
		}
		text := make([]byte, end-start)
		if _, err := memory.ReadAt(text, int64(start)); err != nil {
			return patched, err
		}
		entries, atomics, err := w.entries(text, bias)
		if err != nil {
			patched.LearnedLeft = append(patched.LearnedLeft, addressesOf(w.Learned)...)
			continue // it stays as it is, and is counted
		}
		patched.Patched += atomics
		patched.Learned += len(w.Learned)
		table.Write(entries)
	}
	return patched, nil
}

// entries are the table's entries of a window with its text, for an object loaded with a bias: struct
// dg_site_patch, then struct dg_site_code.
func (w *AtomicWindow) entries(text []byte, bias uint64) (entries []byte, atomics int, err error) {
	var pieces []agent.RawSiteCode
	for i := range w.Moved {
		moved := &w.Moved[i]
		at := moved.PC - w.Start
		inst, err := x86.Decode(text[at:at+uint64(moved.Len)], moved.PC+bias)
		if err != nil || !bytes.Equal(inst.Bytes, moved.Bytes) {
			return nil, 0, fmt.Errorf("the code at %#x differs from the file", moved.PC+bias)
		}
		kind := uint32(agent.PatchCode)
		if w.Ordered[i] {
			var address patch.Code
			m := AtomicOperand(&inst)
			if m.Segment != x86.SegNone || m.Addr32 {
				return nil, 0, patch.ErrImpossible // lea does not compute its address
			}
			if err := address.Address(m); err != nil {
				return nil, 0, err
			}
			pieces = appendPieces(pieces, &address, agent.PatchAddress, inst.PC)
			kind = agent.PatchOperation
			if IsAtomic(&inst) {
				atomics++
			}
		}
		var code patch.Code
		if err := code.Move(&inst); err != nil {
			return nil, 0, err
		}
		pieces = appendPieces(pieces, &code, kind, inst.PC)
	}
	head := agent.RawSitePatch{At: w.Start + bias, Resume: w.End + bias, Kind: agent.PatchAtomic, Length: uint32(w.End - w.Start),
		Before: uint32(len(pieces)), After: crc32.ChecksumIEEE(text)}
	if entries, err = binary.Append(nil, binary.LittleEndian, &head); err == nil {
		entries, err = binary.Append(entries, binary.LittleEndian, pieces)
	}
	return entries, atomics, err
}

// appendPieces cuts code into pieces, each with the bytes up to a displacement or with a displacement.
func appendPieces(list []agent.RawSiteCode, c *patch.Code, kind uint32, at uint64) []agent.RawSiteCode {
	const displacement = 4
	start := 0
	plain := func(end int) {
		for start < end {
			p := agent.RawSiteCode{At: at, Kind: kind}
			p.Count = uint8(copy(p.Bytes[:], c.Bytes[start:end]))
			list = append(list, p)
			start += int(p.Count)
		}
	}
	for _, l := range c.Links {
		plain(l.At)
		start += displacement
		list = append(list, agent.RawSiteCode{At: at, Target: l.Target, Kind: kind, Count: displacement, Link: 1, More: uint8(l.End - start)})
	}
	plain(len(c.Bytes))
	return list
}
