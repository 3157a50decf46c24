package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// target is what this package asks of a process; *image.Process is one.
type target interface {
	image.Memory
	MappingAt(evidence.Addr) *image.Mapping
	ModuleAt(evidence.Addr) *image.Module
	Place(evidence.Addr) evidence.Place
	SymbolAt(evidence.Addr) (image.Symbol, bool)
	SymbolNamed(string) (image.Symbol, bool)
	ThreadLocal(*image.Thread, *image.Module) (evidence.Addr, error)
}

// maxInstruction is the longest x86 instruction (Intel SDM volume 2, 2.3.11).
const maxInstruction = 15

// scene is one thread's end. Its frames begin at the instruction under
// judgement, which for a failure inside a crash handler is the interrupted
// one.
type scene struct {
	target
	mappings []image.Mapping
	modules  []*image.Module
	thread   *image.Thread
	threads  []image.Thread
	frames   []unwind.Frame
	// stack is what the walk says of the frames as a whole, and cut how many
	// of its innermost frames are not in frames.
	stack unwind.Stack
	cut   int
	// cutHandlers counts the signal frames of handlers of SIGABRT among those.
	cutHandlers int
	limits      []evidence.Limit
	// inst is the instruction under judgement; nil when its bytes cannot be
	// read or decoded.
	inst *x86.Inst
	// recorded are the signals whose handlers the thread was in, the outermost first.
	recorded []evidence.Signal
	// exit is the status that the thread ended its process with; nil if it did not.
	exit *int
	// pid is the process's own number.
	pid int
}

func (s *scene) limit(subject, text string) {
	s.limits = append(s.limits, evidence.Limit{Subject: subject, Text: text})
}

// registers are those at the instruction under judgement.
func (s *scene) registers() *image.Registers {
	if len(s.frames) > 0 {
		return &s.frames[0].Registers
	}
	return &s.thread.Registers
}

func (s *scene) pc() evidence.Addr { return s.registers().PC() }

// decode fetches the instruction under judgement.
func (s *scene) decode(pc evidence.Addr) (*x86.Inst, error) {
	var code [maxInstruction]byte
	n, err := s.ReadMemory(pc, code[:])
	if n == 0 {
		return nil, err
	}
	inst, err := x86.Decode(code[:n], uint64(pc))
	if err != nil {
		return nil, err
	}
	return &inst, nil
}

// distance is how many bytes lie between addr and the nearest mapping.
func (s *scene) distance(addr evidence.Addr) uint64 {
	best := ^uint64(0)
	for i := range s.mappings {
		m := &s.mappings[i]
		switch {
		case m.Contains(addr):
			return 0
		case addr < m.Start:
			best = min(best, uint64(m.Start-addr))
		default:
			best = min(best, uint64(addr-m.End)+1)
		}
	}
	return best
}

// threadNumbered returns the thread with a kernel thread id.
func threadNumbered(threads []image.Thread, tid uint64) *image.Thread {
	for i := range threads {
		if tid != 0 && uint64(threads[i].Ref.TID) == tid {
			return &threads[i]
		}
	}
	return nil
}
