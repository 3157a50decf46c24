package gdbserver

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/replay"
)

// changes are what gdb has changed in the copy of the stopped process.
type changes struct {
	// stored: the user has stored to memory, as opposed to gdb for a call.
	stored bool
	// told: the user knows that changes are in a copy.
	told bool
}

// writeMemory answers M (hex) and X.
func (s *Server) writeMemory(packet string) (string, error) {
	place, data, found := strings.Cut(packet[1:], ":")
	addr, length, err := parsePair(place)
	if err != nil {
		return "", err
	}
	content := []byte(data)
	if packet[0] == 'M' {
		if content, err = hex.DecodeString(data); err != nil {
			return "E01", nil
		}
	}
	if !found || uint64(len(content)) != length {
		return "E01", nil
	}
	if length == 0 {
		return "OK", nil // gdb asks whether X is known
	}
	if s.Session.Left() == nil {
		recorded, err := s.recorded(s.selected)
		if err != nil {
			return "", err
		}
		// Below the stack pointer gdb stores arguments.
		const room = 1 << 20
		if sp := recorded.register(indexRSP); addr >= sp || addr < sp-room {
			s.changes.stored = true
		}
	}
	s.threads = nil
	return "OK", s.Session.Changes().WriteMemory(evidence.Addr(addr), content)
}

// writeRegister answers P.
func (s *Server) writeRegister(packet string) (string, error) {
	number, digits, _ := strings.Cut(packet, "=")
	n, err := parseHex(number)
	if err != nil {
		return "", err
	}
	value, err := hex.DecodeString(digits)
	if err != nil {
		return "E01", nil
	}
	f, err := s.file(s.selected)
	if err != nil {
		return "", err
	}
	r := s.register(n)
	if r == nil || len(value) != r.bits/8 {
		return "E01", nil
	}
	if bytes.Equal(f.value(r), value) {
		return "OK", nil
	}
	changed := f.with(r, value)
	if err := s.Session.Changes().SetRegisters(s.selected, changed.general, changed.extended); err != nil {
		return "", err
	}
	delete(s.files, s.selected)
	return "OK", nil
}

// register returns a register by its number; nil: there is none.
func (s *Server) register(n uint64) *register {
	for _, x := range s.features {
		if n < uint64(len(x.registers)) {
			return &x.registers[n]
		}
		n -= uint64(len(x.registers))
	}
	return nil
}

// with returns registers with another value of one.
func (f *registerFile) with(r *register, value []byte) *registerFile {
	g := &registerFile{slices.Clone(f.general), slices.Clone(f.extended)}
	if r.general >= 0 {
		copy(g.general[8*r.general:], value)
		return g
	}
	if r.extended+len(value) > len(g.extended) {
		return g
	}
	states := binary.LittleEndian.Uint64(g.extended[offsetStates:])
	switch {
	case r.name == "ftag":
		g.extended[r.extended] = shortTags(binary.LittleEndian.Uint32(value))
		states |= stateX87
	case r.group == "float" && r.name != "fioff" && r.name != "fooff":
		copy(g.extended[r.extended:], value[:2])
		states |= stateX87
	case r.extended >= offsetYMM:
		if states&stateAVX == 0 {
			clear(g.extended[offsetYMM : offsetYMM+16*16])
		}
		copy(g.extended[r.extended:], value)
		states |= stateAVX
	default:
		copy(g.extended[r.extended:], value)
		states |= stateX87 | stateSSE
	}
	binary.LittleEndian.PutUint64(g.extended[offsetStates:], states)
	return g
}

// register returns a general register.
func (f *registerFile) register(index int) uint64 {
	return binary.LittleEndian.Uint64(f.general[8*index:])
}

// recorded returns a thread's registers in the recording.
func (s *Server) recorded(thread uint32) (*registerFile, error) {
	f := &registerFile{}
	err := s.Session.Do(func(d *replay.DebugStop) (err error) {
		f.general, f.extended, err = d.ThreadRegisters(thread)
		return err
	})
	return f, err
}

// copied serves the copy of the stopped process.
type copied struct{ *Server }

// run runs a call of a function that gdb has prepared in the copy. called is false if there is none: then the copy is given up, as the
// replay is about to continue. steps is the thread that is to be stepped, 0 if there is none.
func (s copied) run(steps uint32) (reply string, called bool, err error) {
	state, err := s.Session.Changes().Copied()
	switch {
	case state == nil || err != nil:
		return "", false, err
	case state.Thread == 0:
		return "", false, s.drop(false)
	}
	thread := state.Thread
	f, err := s.file(thread)
	if err != nil {
		return "", false, err
	}
	recorded, err := s.recorded(thread)
	if err != nil {
		return "", false, err
	}
	moved := f.register(indexRIP) != recorded.register(indexRIP) || f.register(indexRSP) != recorded.register(indexRSP)
	if moved && state.Calls && !s.staying && (s.calling || s.isCalled(f)) {
		s.calling = true
		if steps != 0 && steps != thread {
			// gdb steps a thread over its breakpoint before another one calls.
			if err := s.Session.Changes().StepOther(steps); err != nil {
				return "", true, err
			}
			delete(s.files, steps)
			reply, err := s.threadReply(gdbTrap, "", steps)
			return reply, true, err
		}
		reply, err := s.runCall(thread, steps != 0)
		return reply, true, err
	}
	return "", false, s.drop(!bytes.Equal(f.general, recorded.general))
}

// drop gives up the copy. registers: some were changed.
func (s copied) drop(registers bool) error {
	s.tellDropped(registers)
	s.calling = false
	return s.Session.Changes().Discard()
}

// isCalled reports whether a thread is about to execute a function that returns to a breakpoint of gdb's.
func (s copied) isCalled(f *registerFile) bool {
	var word [8]byte
	err := s.Session.Inspect(func(x debug.State) error {
		_, err := x.ReadMemory(evidence.Addr(f.register(indexRSP)), word[:])
		return err
	})
	return err == nil && s.atBreakpoint(binary.LittleEndian.Uint64(word[:]))
}

// tellDropped tells the user that changes are over; after calls alone only once, as conditions of breakpoints may make them.
func (s copied) tellDropped(registers bool) {
	if s.changes.told && !s.changes.stored && !registers {
		return
	}
	s.changes = changes{told: true}
	fmt.Fprintln(console{s.Server}, "The changes and calls here were made in a copy of the process, which is given up now: the recording continues as it was recorded.")
}

// runCall runs the copy, and returns the stop reply.
func (s copied) runCall(thread uint32, steps bool) (string, error) {
	upTo := slices.Clone(s.points.breakpoints)
	if steps {
		upTo = nil
	}
	err := s.Session.Changes().Run(thread, upTo)
	s.threads, s.files, s.selected = nil, map[uint32]*registerFile{}, thread
	var failed *replay.CallError
	switch {
	case err == nil && steps:
		return s.threadReply(gdbTrap, "", thread)
	case err == nil:
		return s.threadReply(gdbTrap, "swbreak:;", thread)
	case errors.Is(err, debug.ErrInterrupted):
		return s.threadReply(gdbInterrupt, "", thread)
	case !errors.As(err, &failed):
		return "", err
	case failed.End == replay.CallSignal:
		if failed.Thread != 0 {
			thread = failed.Thread
		}
		return s.threadReply(gdbSignal(failed.Signal), "", thread)
	}
	fmt.Fprintln(console{s.Server}, oneLine(failed.Error()))
	return s.threadReply(gdbInterrupt, "", thread)
}
