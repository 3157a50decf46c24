package verify

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"os"

	"diagnose/evidence"
	"diagnose/replay/tracee"
)

// compareMemory compares every byte of the core, except for exclusions.
func (v *verifier) compareMemory() error {
	file, err := os.Open(v.core.CoreFile())
	if err != nil {
		return tracee.Inputf("replay: the recording's core: %w", err)
	}
	defer file.Close()
	pieces, err := corePieces(file)
	if err != nil {
		return err
	}
	excluded := v.exclusions()
	list := mergeExclusions(excluded)
	lost := make([]uint64, len(list))
	var compared, variables []piece
	for _, p := range pieces {
		compared = append(compared, p.without(list, func(i int, bytes uint64) {
			lost[i] += bytes
			if list[i].variables && list[i].Start >= p.Start && list[i].End <= p.End {
				variables = append(variables, piece{list[i].Span, p.offset + int64(list[i].Start-p.Start)})
			}
		})...)
	}
	v.tellExclusions(list, lost)
	found, err := compareMemory(v.ctx, file, compared, v.process, v.savedInUse)
	if err != nil {
		return err
	}
	if err := v.compareVariables(file, variables); err != nil {
		return err
	}
	r := v.result
	r.Ranges, r.Bytes, r.Compared = found.count, found.bytes, found.compared
	for i, x := range found.runs {
		if i == shownDifferences {
			break
		}
		d := Difference{Kind: DifferentMemory, Addr: evidence.Addr(x.Start), Size: x.Size(), Where: v.place(x.Start),
			Want: hex.EncodeToString(x.want), Have: hex.EncodeToString(x.got)}
		d.Order, d.Apart = compareNumbers(x.got, x.want)
		if x.unreadable != "" {
			d.Have, d.Order, d.Apart = "cannot be read: "+x.unreadable, 0, 0
		}
		r.Differences = append(r.Differences, d)
	}
	return nil
}

// compareVariables counts the differing bytes in the library's own variables.
func (v *verifier) compareVariables(file *os.File, variables []piece) error {
	if !v.variables {
		return nil
	}
	found, err := compareMemory(v.ctx, file, variables, v.process, nil)
	if err != nil {
		return err
	}
	for i := range v.result.Excluded {
		if x := &v.result.Excluded[i]; x.What == v.library() {
			x.Different = found.bytes
		}
	}
	return nil
}

// corePieces returns the memory that a core has.
func corePieces(file *os.File) ([]piece, error) {
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, tracee.Inputf("replay: the recording's core: %w", err)
	}
	var pieces []piece
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Filesz > 0 {
			pieces = append(pieces, piece{tracee.Span{Start: p.Vaddr, End: p.Vaddr + p.Filesz}, int64(p.Off)})
		}
	}
	if len(pieces) == 0 {
		return nil, tracee.Inputf("replay: the recording's core holds no memory")
	}
	return pieces, nil
}

// compareNumbers compares unsigned numbers of at most eight bytes, the lowest one first, and returns how
// far they are from each other. Longer ones are cut.
func compareNumbers(a, b []byte) (order int, apart uint64) {
	var x, y [8]byte
	n := min(len(a), len(b), len(x))
	copy(x[:], a[:n])
	copy(y[:], b[:n])
	have, want := binary.LittleEndian.Uint64(x[:]), binary.LittleEndian.Uint64(y[:])
	return cmp.Compare(have, want), max(have, want) - min(have, want)
}
