package checkpoint

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// page is the address of a page of ours in the process, in the engine's range: after struct dg_hunt, before the patch table. It
// has a system call instruction, a trap, and code that waits.
const page = agent.EngineSites - tracee.PageSize

// Offsets in the page.
const (
	trapAt    = 8
	waitAt    = 16
	timeAt    = 64
	scratchAt = 128
	filterAt  = 256
)

// ReturnPC is an address in a copy that traps: functions that are called there return to it.
const ReturnPC = page + trapAt

// waitSeconds bounds how long a process waits that no thread of the tool traces. If the tool is killed in between, it ends then.
const waitSeconds = 20

// pageCode is the page's contents.
func pageCode() []byte {
	code := make([]byte, scratchAt)
	copy(code, []byte{0x0f, 0x05, 0x90}) // syscall; nop
	code[trapAt] = tracee.Int3
	wait := []byte{0xb8, unix.SYS_NANOSLEEP, 0, 0, 0}
	// lea timeAt(%rip), %rdi: the displacement is from the end of this instruction
	wait = append(wait, 0x48, 0x8d, 0x3d, timeAt-(waitAt+5+7), 0, 0, 0)
	wait = append(wait, 0x31, 0xf6, 0x0f, 0x05) // xor %esi, %esi; syscall
	wait = append(wait, 0xb8, unix.SYS_EXIT_GROUP, 0, 0, 0, 0x0f, 0x05)
	copy(code[waitAt:], wait)
	binary.LittleEndian.PutUint64(code[timeAt:], waitSeconds)
	return code
}

// mapPage maps the page through a stopped thread, if the process does not have it, and writes it.
func mapPage(p *tracee.Process, tid int) error {
	if !p.Memory.Mapped(page) {
		at, err := ptrace.SystemCall(tid, unix.SYS_MMAP, page, tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
		if err != nil {
			return err
		}
		if at != page {
			return errors.New("checkpoint: there is no room in the process for a page")
		}
	}
	_, err := p.Memory.WriteAt(pageCode(), page)
	return err
}
