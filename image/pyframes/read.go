package pyframes

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// The bounds of lists.
const (
	mostInterpreters = 64
	mostThreads      = 16384
	mostFrames       = 200 // of a thread
	mostAllFrames    = 100_000
)

// Thread are the frames of a thread, innermost first.
type Thread struct {
	// TID is the thread's, as the kernel numbers it.
	TID    int
	Frames []evidence.PythonFrame
	// Stopped says why the frames further out were not read.
	Stopped string
}

// ErrNone is for a process that has no CPython of 3.11 or later.
var ErrNone = errors.New("no Python")

// Read reads the frames of all threads of the first CPython of a process. The error is ErrNone where there is none. Threads without frames
// are left out.
func Read(p *image.Process) ([]Thread, error) {
	at := map[string]evidence.Addr{}
	for _, name := range []string{"_PyRuntime", "Py_Version", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type"} {
		s, ok := p.SymbolNamed(name)
		if !ok {
			return nil, ErrNone
		}
		at[name] = s.Addr
	}
	version, err := versionOf(p, at["Py_Version"])
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(p, at["_PyRuntime"], version)
	if err != nil {
		return nil, err
	}
	r := &reader{memory: p, layout: l, left: mostAllFrames, code: at["PyCode_Type"], unicode: at["PyUnicode_Type"], bytes: at["PyBytes_Type"],
		codes: map[evidence.Addr]*code{}}
	return r.threads(at["_PyRuntime"])
}

// reader reads the structures of one runtime.
type reader struct {
	memory image.Memory
	layout *layout
	// left is how many frames may still be read.
	left int
	// code, unicode and bytes are the type objects.
	code, unicode, bytes evidence.Addr
	codes                map[evidence.Addr]*code
}

func (r *reader) pointer(at evidence.Addr) (evidence.Addr, error) {
	v, err := image.Uint64(r.memory, at)
	return evidence.Addr(v), err
}

// threads reads the lists of interpreters and of their threads.
func (r *reader) threads(runtime evidence.Addr) (list []Thread, err error) {
	l := r.layout
	interpreter, err := r.pointer(runtime + evidence.Addr(l.interpreters))
	if err != nil {
		return nil, fmt.Errorf("interpreters of Python: %w", err)
	}
	seen := 0
	for range mostInterpreters {
		if interpreter == 0 {
			break
		}
		state, err := r.pointer(interpreter + evidence.Addr(l.threads))
		if err != nil {
			return list, fmt.Errorf("threads of Python: %w", err)
		}
		for ; state != 0 && seen < mostThreads; seen++ {
			if t, ok := r.thread(state); ok {
				list = append(list, t)
			}
			if state, err = r.pointer(state + evidence.Addr(l.nextThread)); err != nil {
				return list, fmt.Errorf("threads of Python: %w", err)
			}
		}
		if interpreter, err = r.pointer(interpreter + evidence.Addr(l.nextInterpreter)); err != nil {
			return list, fmt.Errorf("interpreters of Python: %w", err)
		}
	}
	return list, nil
}

// thread reads the frames of a thread; false if it has none, or its number cannot be read.
func (r *reader) thread(state evidence.Addr) (t Thread, ok bool) {
	const highest = 1 << 22 // PID_MAX_LIMIT
	id, err := image.Uint64(r.memory, state+evidence.Addr(r.layout.native))
	if err != nil || id == 0 || id > highest {
		return t, false
	}
	t.TID = int(id)
	frame, err := r.pointer(state + evidence.Addr(r.layout.frame))
	if err == nil && r.layout.cframe != unused && frame != 0 {
		frame, err = r.pointer(frame + evidence.Addr(r.layout.cframe))
	}
	for err == nil && frame != 0 {
		if len(t.Frames) == mostFrames || r.left == 0 {
			t.Stopped = "there are more frames than are read"
			return t, true
		}
		r.left--
		var f *evidence.PythonFrame
		if f, err = r.frame(frame); err != nil {
			break
		}
		if f != nil {
			t.Frames = append(t.Frames, *f)
		}
		frame, err = r.pointer(frame + evidence.Addr(r.layout.previous))
	}
	if err != nil {
		t.Stopped = err.Error()
	}
	return t, len(t.Frames) > 0 || t.Stopped != ""
}

// The owners of frames (Include/internal/pycore_frame.h, enum _frameowner).
const (
	ownedByGenerator = 1
	ownedByObject    = 2
	ownedByCStack    = 3
)

// frame reads a frame; nil without an error where it is no call of a Python function, or one that has not begun.
func (r *reader) frame(at evidence.Addr) (*evidence.PythonFrame, error) {
	l := r.layout
	var owner [1]byte
	if _, err := r.memory.ReadMemory(at+evidence.Addr(l.owner), owner[:]); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	switch {
	case owner[0] == ownedByCStack && l.shim:
		return nil, nil
	case owner[0] > ownedByObject:
		return nil, fmt.Errorf("the frame at %v has no owner that is known", at)
	}
	codeAt, err := r.pointer(at + evidence.Addr(l.code))
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	instruction, err := r.pointer(at + evidence.Addr(l.instruction))
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	c, err := r.codeAt(codeAt)
	if err != nil {
		return nil, err
	}
	start := codeAt + evidence.Addr(l.text)
	const unit = 2 // bytes of _Py_CODEUNIT
	if owner[0] != ownedByGenerator && instruction < start+unit*evidence.Addr(c.traceable) {
		return nil, nil // _PyFrame_IsIncomplete
	}
	f := &evidence.PythonFrame{Function: c.name, File: c.file}
	if instruction >= start {
		f.Line = lineAt(c.lines, c.first, uint64(instruction-start)/unit)
	}
	return f, nil
}
