package pyframes

import (
	"encoding/binary"
	"errors"
	"testing"

	"diagnose/evidence"
)

// flat is memory from address base on.
type flat []byte

const base = 0x10000

func (m flat) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr < base || uint64(addr-base) > uint64(len(m)) {
		return 0, errors.New("not mapped")
	}
	if n := copy(p, m[addr-base:]); n < len(p) {
		return n, errors.New("not mapped")
	}
	return len(p), nil
}

// small is a runtime of 3.12 with one thread that has one frame, which names itself as its caller.
func small() flat {
	m := make(flat, 4096)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(m[at-base:], v) }
	const interpreter, thread, cframe, frame, code, text, table = base + 0x100, base + 0x200, base + 0x300, base + 0x380, base + 0x400, base + 0x600, base + 0x700
	l := layouts[0x030c]
	put(base+int(l.interpreters), interpreter)
	put(interpreter+int(l.threads), thread)
	put(thread+int(l.native), 7)
	put(thread+int(l.frame), cframe)
	put(cframe, frame)
	put(frame, code)
	put(frame+int(l.previous), frame)
	put(frame+int(l.instruction), code+l.text+4)
	put(code+objectType, 1)
	put(code+int(l.file), text)
	put(code+int(l.qualname), text)
	put(code+int(l.first), 10)
	put(code+int(l.linetable), table)
	put(text+objectType, 2)
	put(text+unicodeLength, 3)
	put(text+unicodeState, 1<<2|1<<5|1<<6)
	copy(m[text-base+int(l.ascii):], "run")
	put(table+objectType, 3)
	put(table+variableSize, 4)
	copy(m[table-base+bytesText:], []byte{0x80 | noColumn<<3 | 1, 0, 0x80 | noColumn<<3, 6})
	return m
}

func readerOf(m flat, version uint64) (*reader, error) {
	l, err := layoutOf(m, base, version)
	return &reader{memory: m, layout: l, left: 1000, code: 1, unicode: 2, bytes: 3, codes: map[evidence.Addr]*code{}}, err
}

// A stack that leads to itself ends, and its frames have the line that the table gives.
func TestSmall(t *testing.T) {
	r, err := readerOf(small(), 0x030c01f0)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.threads(base)
	if err != nil || len(list) != 1 || len(list[0].Frames) != mostFrames || list[0].Stopped == "" {
		t.Fatalf("%+v, %v", list, err)
	}
	if f := list[0].Frames[0]; f != (evidence.PythonFrame{Function: "run", File: "run", Line: 13}) {
		t.Errorf("%+v", f)
	}
	if _, err := readerOf(small(), 0x030e00f0); err == nil {
		t.Error("the frames of 3.14 are read")
	}
	if _, err := readerOf(small(), 0x030d00f0); err == nil {
		t.Error("those of 3.13 are, without its offsets")
	}
}

func FuzzThreads(f *testing.F) {
	f.Add([]byte(small()), uint64(0x030c01f0))
	f.Add(append([]byte(cookie), make([]byte, 512)...), uint64(0x030d00f0))
	f.Fuzz(func(t *testing.T, data []byte, version uint64) {
		r, err := readerOf(flat(data), version)
		if err != nil {
			return
		}
		list, _ := r.threads(base)
		frames := 0
		for i := range list {
			frames += len(list[i].Frames)
		}
		if frames > 1000 {
			t.Errorf("%d frames", frames)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte{0x80 | long<<3, 3, 0, 0, 0, 0x80 | oneLine<<3, 1, 2}, 10, uint64(1))
	f.Fuzz(func(t *testing.T, table []byte, first int, unit uint64) {
		if line := lineAt(table, first, unit); line < 0 {
			t.Errorf("line %d", line)
		}
	})
}
