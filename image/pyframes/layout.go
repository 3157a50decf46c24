package pyframes

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// layout are the offsets of the fields that are read, in bytes. unused marks those that a version lacks.
type layout struct {
	interpreters                           uint64 // of _PyRuntimeState: interpreters.head
	nextInterpreter, threads               uint64 // of PyInterpreterState
	nextThread, native, frame              uint64 // of PyThreadState; frame is that of current_frame, or of cframe
	cframe                                 uint64 // of _PyCFrame: current_frame
	code, previous, instruction, owner     uint64 // of _PyInterpreterFrame
	file, qualname, linetable, first, text uint64 // of PyCodeObject; text is co_code_adaptive
	traceable                              uint64 // of PyCodeObject: _co_firsttraceable
	ascii, compact                         uint64 // the sizes of PyASCIIObject and PyCompactUnicodeObject
	shim                                   bool   // the C stack may own frames, which are no calls of Python functions
}

const unused = ^uint64(0)

// The offsets that all these versions share.
const (
	objectType    = 8  // PyObject.ob_type
	variableSize  = 16 // PyVarObject.ob_size
	bytesText     = 32 // PyBytesObject.ob_sval
	unicodeLength = 16 // PyASCIIObject.length
	unicodeState  = 32 // PyASCIIObject.state
)

// layouts are those of the versions without offsets in memory, by their number without the release: 3.11 is 0x030b
// (Include/internal/pycore_frame.h and others, which do not change within a version).
var layouts = map[uint64]layout{
	0x030b: {interpreters: 40, nextInterpreter: 0, threads: 16, nextThread: 8, native: 160, frame: 56, cframe: 8, code: 32, previous: 48, instruction: 56, owner: 69,
		file: 112, qualname: 128, linetable: 136, first: 72, text: 184, traceable: 168, ascii: 48, compact: 72},
	0x030c: {interpreters: 40, nextInterpreter: 0, threads: 72, nextThread: 8, native: 144, frame: 56, cframe: 0, code: 0, previous: 8, instruction: 56, owner: 70,
		file: 112, qualname: 128, linetable: 136, first: 68, text: 192, traceable: 176, ascii: 40, compact: 56, shim: true},
}

// described is the version from which on the runtime begins with its offsets (_Py_DebugOffsets).
const described = 0x030d

// debugOffsets is the beginning of _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h).
type debugOffsets struct {
	Cookie       [8]byte
	Version      uint64
	FreeThreaded uint64
	Runtime      struct{ Size, Finalizing, Interpreters uint64 }
	Interpreter  struct {
		Size, ID, Next, Threads uint64
		Others                  [9]uint64
	}
	Thread struct{ Size, Previous, Next, Interpreter, Frame, ID, Native, Chunk, Status uint64 }
	Frame  struct{ Size, Previous, Executable, Instruction, Locals, Owner uint64 }
	Code   struct{ Size, File, Name, Qualname, Linetable, First, Arguments, Names, Kinds, Text uint64 }
}

const cookie = "xdebugpy"

// layoutOf finds the layout of a version; an error if it is not known.
func layoutOf(m image.Memory, runtime evidence.Addr, version uint64) (*layout, error) {
	minor := version >> 16
	if l, ok := layouts[minor]; ok {
		return &l, nil
	}
	if minor != described {
		return nil, fmt.Errorf("the frames of Python %d.%d are not known", minor>>8, minor&0xff)
	}
	d, err := image.Struct[debugOffsets](m, runtime)
	if err != nil {
		return nil, err
	}
	if string(d.Cookie[:]) != cookie || d.Version != version || d.FreeThreaded != 0 {
		return nil, fmt.Errorf("the runtime of Python 3.13 at %v has no offsets that are known", runtime)
	}
	l := &layout{interpreters: d.Runtime.Interpreters, nextInterpreter: d.Interpreter.Next, threads: d.Interpreter.Threads,
		nextThread: d.Thread.Next, native: d.Thread.Native, frame: d.Thread.Frame, cframe: unused,
		code: d.Frame.Executable, previous: d.Frame.Previous, instruction: d.Frame.Instruction, owner: d.Frame.Owner,
		file: d.Code.File, qualname: d.Code.Qualname, linetable: d.Code.Linetable, first: d.Code.First, text: d.Code.Text, traceable: unused,
		ascii: 40, compact: 56, shim: true}
	return l, l.check()
}

// check refuses offsets that no structure has.
func (l *layout) check() error {
	const most = 1 << 20
	for _, offset := range []uint64{l.interpreters, l.nextInterpreter, l.threads, l.nextThread, l.native, l.frame, l.code, l.previous, l.instruction, l.owner,
		l.file, l.qualname, l.linetable, l.first, l.text} {
		if offset > most {
			return fmt.Errorf("an offset of Python's runtime is %#x", offset)
		}
	}
	return nil
}

// versionOf reads Py_Version, which is PY_VERSION_HEX.
func versionOf(m image.Memory, at evidence.Addr) (uint64, error) {
	var b [8]byte
	if _, err := m.ReadMemory(at, b[:]); err != nil {
		return 0, fmt.Errorf("version of Python: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
