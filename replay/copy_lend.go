package replay

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
	"diagnose/replay/checkpoint"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Foreign is memory of another process, at addresses where the program has none. A function that is called in a copy gets a page of it when it
// first accesses that, at its address. What it has written there is written back when it returns.
type Foreign interface {
	// ReadPage reads the page at an address; ok: there is one.
	ReadPage(addr uint64, p []byte) (writable, ok bool)
	WritePage(addr uint64, p []byte) error
}

// lending are the foreign pages that a copy has.
type lending struct {
	from  Foreign
	pages map[uint64]*lentPage
}

// lentPage is a page as it was when the call began.
type lentPage struct {
	data     []byte
	writable bool
}

// mostLent bounds the pages: 64 MB.
const mostLent = 64 << 20 / tracee.PageSize

// beginLending prepares a call: the other process may have changed its pages.
func (c *controller) beginLending(t *tracee.Thread, call *Call) error {
	if call.Foreign == nil {
		c.lending = nil
		return nil
	}
	if c.lending == nil || c.lending.from != call.Foreign {
		c.lending = &lending{from: call.Foreign, pages: map[uint64]*lentPage{}}
	}
	for addr, x := range c.lending.pages {
		now := make([]byte, tracee.PageSize)
		writable, ok := c.lending.from.ReadPage(addr, now)
		if !ok || writable != x.writable {
			delete(c.lending.pages, addr)
			if _, err := checkpoint.CallIn(t.TID, unix.SYS_MUNMAP, addr, tracee.PageSize); err != nil {
				return err
			}
			continue
		}
		if !bytes.Equal(now, x.data) {
			if _, err := c.Memory.WriteAt(now, int64(addr)); err != nil {
				return err
			}
		}
		x.data = now
	}
	// A page that only the engine reads, for a system call, causes no fault.
	for _, v := range call.Integers {
		if _, err := c.lend(t, v); err != nil {
			return err
		}
	}
	return nil
}

// lend maps the foreign page of an address through a stopped thread. It reports whether the copy has got it now.
func (c *controller) lend(t *tracee.Thread, addr uint64) (bool, error) {
	l := c.lending
	addr &^= tracee.PageSize - 1
	if l.pages[addr] != nil || len(l.pages) == mostLent {
		return false, nil
	}
	x := &lentPage{data: make([]byte, tracee.PageSize)}
	var ok bool
	if x.writable, ok = l.from.ReadPage(addr, x.data); !ok {
		return false, nil
	}
	protection := uint64(unix.PROT_READ)
	if x.writable {
		protection |= unix.PROT_WRITE
	}
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	_, err := checkpoint.CallIn(t.TID, unix.SYS_MMAP, addr, tracee.PageSize, protection, flags, ^uint64(0), 0)
	if errors.Is(err, unix.EEXIST) {
		return false, nil // it is the program's own
	}
	if err != nil {
		return false, err
	}
	l.pages[addr] = x
	_, err = c.Memory.WriteAt(x.data, int64(addr))
	return err == nil, err
}

// lendAtFault handles a fault of a copy's thread that accessed a foreign page.
func (c *controller) lendAtFault(t *tracee.Thread, s *tracee.SignalStop) (bool, error) {
	const noMapping = 1 // SEGV_MAPERR of asm-generic/siginfo.h
	if c.lending == nil || s.Signal != unix.SIGSEGV || s.Code != noMapping {
		return false, nil
	}
	signal, ok := siginfo.Parse(s.Info[:])
	if !ok || !signal.HasAddr {
		return false, nil
	}
	lent, err := c.lend(t, uint64(signal.Addr))
	if !lent || err != nil {
		return false, err
	}
	if end := uint64(signal.Addr)&^(tracee.PageSize-1) + tracee.PageSize; end-uint64(signal.Addr) < mostAccess {
		_, err = c.lend(t, end) // the access may reach into the next page
	}
	if err != nil {
		return false, err
	}
	return true, c.cont(t, 0)
}

// mostAccess is the size of the largest access of an instruction that is not repeated (XSAVE apart).
const mostAccess = 64

// endLending writes back what the call has changed.
func (c *controller) endLending() error {
	if c.lending == nil {
		return nil
	}
	for addr, x := range c.lending.pages {
		if !x.writable {
			continue
		}
		now := make([]byte, tracee.PageSize)
		if _, err := c.Memory.ReadAt(now, int64(addr)); err != nil {
			continue // the function has unmapped it
		}
		if bytes.Equal(now, x.data) {
			continue
		}
		if err := c.lending.from.WritePage(addr, now); err != nil {
			return err
		}
		x.data = now
	}
	return nil
}

// stackRoom is what the arguments on the stack take.
func stackRoom(call *Call) uint64 { return (uint64(len(call.Stack)) + 63) &^ 63 }

// pushStack writes the arguments on the stack, above the return address at sp.
func (x *Copy) pushStack(call *Call, sp uint64) error {
	if len(call.Stack) == 0 {
		return nil
	}
	return x.WriteMemory(evidence.Addr(sp+8), call.Stack)
}

// readX87 reads the x87 part of the FXSAVE area of the copy's thread.
func (x *Copy) readX87() ([]byte, error) {
	area := make([]byte, ptrace.FXSaveBytes)
	if _, err := ptrace.ReadRegset(x.thread.TID, ptrace.RegsetFP, area); err != nil {
		return nil, err
	}
	return area[:x87Size], nil
}

// x87Size is where the vector registers begin in the FXSAVE area (Intel SDM volume 1, table 10-2).
const x87Size = 160
