package canary

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86/heights"
)

// Buffer is an array or other overrunnable variable of a frame.
type Buffer struct {
	Name, Type string
	Addr       evidence.Addr
	Size       uint64
}

// end is the first address past the buffer.
func (b *Buffer) end() evidence.Addr { return b.Addr + evidence.Addr(b.Size) }

// Frame is a physical frame of the stack, with the code of its function.
type Frame struct {
	// Function is its name as shown; __stack_chk_fail and the frames inward of
	// it need nothing else.
	Function string
	// Code is all of the function's code, the range with its entry first. Empty
	// when it is not known; then the frame is skipped.
	Code []heights.Code
	// Registers are the frame's, CFA its canonical frame address. Lookup says
	// whether the pc is a return address.
	Registers image.Registers
	CFA       evidence.Addr
	Lookup    image.Lookup
	// Trust says how the unwinder found the frame; guessed frames are skipped.
	Trust evidence.Trust
	// Buffers are the arrays in the frame's memory.
	Buffers []Buffer
	Site    *evidence.Site
}

// pc is an address within the frame's current instruction.
func (f *Frame) pc() evidence.Addr {
	return f.Lookup.Address(f.Registers.PC())
}

// Stack is the stack of one thread, innermost frame first, and the address of
// its guards' reference value.
type Stack struct {
	Frames []Frame
	FSBase evidence.Addr
	// Random is the address of the 16 random bytes that the kernel passed to
	// the process (AT_RANDOM), from which glibc makes the reference value; 0
	// when it is not known.
	Random evidence.Addr
	Thread evidence.ThreadRef
}

// CheckStack returns a finding for the innermost frame whose guard was overwritten: the one that
// called __stack_chk_fail, or one that has not returned yet; or for the thread's reference value,
// if that was overwritten and the frame's guard is intact. Frames outward of it are not judged,
// because the unwinder may have restored their registers from the overwritten memory. The error
// says that the reference value could not be read; a stack without guards yields nothing.
func CheckStack(m image.Memory, s Stack) ([]evidence.Finding, error) {
	reference, err := image.Uint64(m, s.FSBase+guardOffset)
	if err != nil {
		return nil, fmt.Errorf("stack guard of thread %d: %w", s.Thread.TID, err)
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		smashed := i > 0 && s.Frames[i-1].Function == "__stack_chk_fail"
		var outer *Frame
		if i+1 < len(s.Frames) {
			outer = &s.Frames[i+1]
		}
		addr, ok := guardAddress(m, f, outer, smashed)
		if !ok {
			continue
		}
		found := make([]byte, 8)
		if _, err := m.ReadMemory(addr, found); err != nil {
			continue
		}
		value := binary.LittleEndian.Uint64(found)
		if value == reference {
			continue
		}
		d := damage{frame: f, smashed: smashed, addr: addr, expected: reference, found: found, thread: s.Thread}
		if initial, known := initialGuard(m, s.Random); known && value == initial {
			return []evidence.Finding{d.referenceFinding(s.FSBase + guardOffset)}, nil
		}
		return []evidence.Finding{d.finding(m)}, nil
	}
	return nil, nil
}

// initialGuard is the reference value that glibc makes from the kernel's random
// bytes: the first eight, the lowest zero (_dl_setup_stack_chk_guard).
func initialGuard(m image.Memory, random evidence.Addr) (value uint64, known bool) {
	if random == 0 {
		return 0, false
	}
	v, err := image.Uint64(m, random)
	return v &^ 0xff, err == nil
}

// guardAddress returns the address of the frame's guard, if the code shows
// where it is and that it is filled.
func guardAddress(m image.Memory, f, outer *Frame, smashed bool) (evidence.Addr, bool) {
	if !mayGuard(f.Code) || f.Trust.Guess() || f.Trust == "" {
		return 0, false
	}
	g := heights.New(f.Code)
	here, ok := g.Covering(uint64(f.pc()))
	if !ok {
		return 0, false
	}
	at := g.Heights()
	s, ok := findSlot(g, at)
	if !ok || !smashed && !s.filled(g, here) {
		return 0, false
	}
	addr, ok := s.resolve(m, f, outer, at[here], smashed)
	if !ok || addr%8 != 0 || addr < f.Registers.SP() || f.CFA != 0 && addr >= f.CFA {
		return 0, false
	}
	return addr, true
}
