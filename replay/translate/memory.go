package translate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// The tool's data in the process is in the lowest 2 GiB, where an address is a displacement of 32 bits. First there are
// words, then the table of the copies to which jumps through registers and memory lead.
const (
	wordLog    = 8 * iota // the place of the next record
	wordFree              // the block's free register
	wordTarget            // of an indirect jump
	wordJump              // the copy of its target
	wordA                 // saved rax, rcx and rdx
	wordC
	wordD

	// tableSlots are indexed by the low bits of an address.
	tableSlots  = 1 << 16
	tableAt     = tracee.PageSize // negated addresses
	tableCodeAt = tableAt + 8*tableSlots
	dataSize    = tableCodeAt + 8*tableSlots

	logSize   = 8 << 20
	arenaSize = 16 << 20
	// arenaReach is how far the copies of code may be from it.
	arenaReach = 1<<31 - 256<<20
)

// arena is memory for copies within reach of the code.
type arena struct {
	tracee.Span
	next uint64
}

// mapData maps the data and the log, one after the other, through a stopped thread.
func (x *Translator) mapData(t *tracee.Thread) error {
	maps, err := tracee.ReadMaps(x.process.PID)
	if err != nil {
		return err
	}
	const highest, lowest, step, size = 0x7c000000, 0x10000000, 16 << 20, dataSize + logSize + tracee.PageSize
	at := uint64(highest)
	for ; maps.Overlap(at, at+size); at -= step {
		if at < lowest+step {
			return errors.New("replay: no memory for the translator's data below 2 GiB")
		}
	}
	call := func(number uint64, args ...uint64) error {
		result, err := ptrace.SystemCall(t.TID, number, args...)
		if err == nil {
			err = ptrace.ResultError(result)
		}
		if err != nil {
			return fmt.Errorf("replay: memory for the translator: %w", err)
		}
		return nil
	}
	if err := call(unix.SYS_MMAP, at, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0); err != nil {
		return err
	}
	x.data, x.log = at, tracee.Span{Start: at + dataSize, End: at + dataSize + logSize}
	x.process.Mapped = append(x.process.Mapped, tracee.Span{Start: at, End: x.log.End}, tracee.Span{Start: x.log.End, End: at + size})
	if err := call(unix.SYS_MPROTECT, x.log.End, tracee.PageSize, unix.PROT_NONE); err != nil {
		return err
	}
	return x.clearTable()
}

// clearTable fills the table with addresses that have other low bits than their slots, so none of them is found.
func (x *Translator) clearTable() error {
	table := make([]byte, 8*tableSlots)
	for i := range uint64(tableSlots) {
		binary.LittleEndian.PutUint64(table[8*i:], -(i ^ 1))
	}
	return x.write(x.data+tableAt, table)
}

// enter puts a copy into the table.
func (x *Translator) enter(pc, code uint64) error {
	slot := 8 * (pc % tableSlots)
	if err := x.process.Memory.SetWord(x.data+tableCodeAt+slot, code); err != nil {
		return err
	}
	return x.process.Memory.SetWord(x.data+tableAt+slot, -pc)
}

// arenaFor returns the arena for the copy of code at a pc; one is mapped if there is none near it.
func (x *Translator) arenaFor(t *tracee.Thread, pc uint64) (*arena, error) {
	for _, a := range x.arenas {
		if d := int64(a.Start - pc); d > -arenaReach && d < arenaReach {
			return a, nil
		}
	}
	at, err := x.process.MapNear(t, pc, arenaSize)
	if err != nil {
		return nil, err
	}
	a := &arena{Span: tracee.Span{Start: at, End: at + arenaSize}, next: at}
	x.process.Mapped = append(x.process.Mapped, a.Span)
	x.arenas = append(x.arenas, a)
	return a, nil
}

func (x *Translator) write(at uint64, p []byte) error {
	_, err := x.process.Memory.Memory.WriteAt(p, int64(at))
	return err
}
