package gocore

import (
	"fmt"

	"diagnose/evidence"

	"github.com/go-delve/delve/pkg/goversion"
)

// layout holds offsets of fields in structures of the runtime for x86-64
// (runtime/runtime2.go), for programs without DWARF. TestLayouts compares it
// with the DWARF of the toolchain at hand.
type layout struct {
	status, id, reason            int // g.atomicstatus, goid, waitreason
	signal, signalCode, faultAddr int // g.sig, sigcode0, sigcode1
	framePointer                  int // g.sched.bp
	threadID                      int // m.procid
	panicValue                    int // _panic.arg
}

// Fields whose offsets have not changed since Go 1.18: g.stack, g._panic, g.m,
// g.sched with its sp, pc and g.
const (
	gStackLow, gStackHigh     = 0, 8
	gPanic, gThread           = 32, 48
	gSavedSP, gSavedPC, gSelf = 56, 64, 72
	// gSize covers the fields that are read.
	gSize = 320
)

// layouts by the minor version of Go 1.
var layouts = map[int]layout{
	18: {status: 144, id: 152, reason: 176, signal: 240, signalCode: 272, faultAddr: 280, framePointer: 104, threadID: 72, panicValue: 8},
	19: {status: 144, id: 152, reason: 176, signal: 240, signalCode: 272, faultAddr: 280, framePointer: 104, threadID: 72, panicValue: 8},
	20: {status: 144, id: 152, reason: 176, signal: 240, signalCode: 272, faultAddr: 280, framePointer: 104, threadID: 72, panicValue: 8},
	21: {status: 144, id: 152, reason: 176, signal: 216, signalCode: 248, faultAddr: 256, framePointer: 104, threadID: 72, panicValue: 8},
	22: {status: 144, id: 152, reason: 176, signal: 216, signalCode: 248, faultAddr: 256, framePointer: 104, threadID: 72, panicValue: 8},
	23: {status: 152, id: 160, reason: 184, signal: 224, signalCode: 256, faultAddr: 264, framePointer: 104, threadID: 72, panicValue: 8},
	24: {status: 152, id: 160, reason: 184, signal: 228, signalCode: 256, faultAddr: 264, framePointer: 104, threadID: 72, panicValue: 8},
	25: {status: 144, id: 152, reason: 176, signal: 220, signalCode: 248, faultAddr: 256, framePointer: 96, threadID: 64, panicValue: 8},
	26: {status: 144, id: 152, reason: 176, signal: 224, signalCode: 256, faultAddr: 264, framePointer: 96, threadID: 64, panicValue: 0},
}

// layoutOf returns the layout of a version, "go1.26.8".
func layoutOf(version string) (layout, error) {
	v, ok := goversion.Parse(version)
	l, known := layouts[v.Minor]
	if !ok || v.Major != 1 || !known {
		return layout{}, fmt.Errorf("it has no DWARF, and the structures of the runtime of %s are not known", version)
	}
	return l, nil
}

// goroutineRecord is a runtime.g.
type goroutineRecord struct {
	addr   evidence.Addr
	status uint64
	id     uint64
	// low and high are the ends of its stack, pc, sp and fp its registers when
	// it last left the processor.
	low, high, pc, sp, fp evidence.Addr
	thread, panicking     evidence.Addr // its m and _panic, 0 for none
	reason                byte
	signal                uint32
	signalCode, faultAddr uint64
}
