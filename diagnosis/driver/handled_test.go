package driver

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay/record/eventlog"
)

// handledAt is a signal that interrupted a thread at a pc with a stack pointer.
func handledAt(number int, place eventlog.SignalPlace, pc, sp uint64) eventlog.HandledSignal {
	info := make([]byte, 128)
	binary.LittleEndian.PutUint32(info, uint32(number))
	h := eventlog.HandledSignal{Number: number, Place: place, PC: evidence.Addr(pc), Info: info}
	h.Registers[15] = sp
	return h
}

// frameAt is a frame whose function is at a pc with a stack pointer.
func frameAt(kind evidence.FrameKind, pc, sp uint64) unwind.Frame {
	f := unwind.Frame{Kind: kind}
	f.Registers.Set(image.RIP, pc)
	f.Registers.Set(image.RSP, sp)
	return f
}

// A signal belongs to the frame that it interrupted; one whose handler was left by a jump
// belongs to none.
func TestHandledSignalsOnStack(t *testing.T) {
	handled := handledSignals{handledAt(11, eventlog.PlaceFault, 0x10, 0x900), handledAt(8, eventlog.PlaceFault, 0x20, 0x800), handledAt(10, eventlog.PlaceEvent, 0x30, 0x700)}
	frames := []unwind.Frame{frameAt(evidence.Physical, 0x99, 0x600), frameAt(evidence.SignalFrame, 0x98, 0x680), frameAt(evidence.Physical, 0x30, 0x700),
		frameAt(evidence.SignalFrame, 0x98, 0x880), frameAt(evidence.Physical, 0x10, 0x900)}
	got := handled.onStack(frames)
	if len(got) != 2 || got[0].Name != "SIGSEGV" || got[1].Name != "SIGUSR1" {
		t.Errorf("of three signals, the handlers of two are on the stack: %+v", got)
	}
	frames[2].Registers.Set(image.RIP, 0x31)
	if got := handled.onStack(frames); len(got) != 3 {
		t.Errorf("where a frame matches no signal, all are returned: %+v", got)
	}
	if got := handled.onStack(frames[:1]); len(got) != 0 {
		t.Errorf("a stack without a handler has %+v", got)
	}
	if got := handled.lastFault(); got == nil || got.Number != 8 {
		t.Errorf("the last fault is %+v", got)
	}
	if got := handled[2:].lastFault(); got != nil {
		t.Errorf("a signal that was sent is no fault: %+v", got)
	}
}
