package staticscan

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// fakeMemory is a few ranges of bytes.
type fakeMemory map[evidence.Addr][]byte

func (m fakeMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for start, data := range m {
		if addr >= start && addr < start+evidence.Addr(len(data)) {
			if n := copy(p, data[addr-start:]); n == len(p) {
				return n, nil
			}
		}
	}
	return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
}

func words(list ...uint64) []byte {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

const (
	fakeGOT     = 0x3000
	fakeData    = 0x4000
	fakeOther   = 0x4100
	fakeThread  = 0x7000
	fakeHeap    = 0x9000
	fakeDataEnd = 0x4200
)

// fakeSurroundings is a program of two variables, at fakeData and fakeOther,
// with pointers to the heap at fakeData+0x20 and +0x28.
func fakeSurroundings() *surroundings {
	data := make([]byte, fakeDataEnd-fakeData)
	copy(data[0x20:], words(fakeHeap, fakeHeap))
	memory := fakeMemory{
		fakeGOT:    words(fakeData, ^uint64(15)),
		fakeData:   data,
		fakeThread: words(fakeThread),
		fakeHeap:   words(1, fakeHeap+0x10, 2, 3),
	}
	return &surroundings{
		memory:        memory,
		data:          func(a uint64) bool { return a >= fakeData && a < fakeDataEnd },
		fixed:         func(a uint64) bool { return a >= fakeGOT && a < fakeGOT+0x100 },
		same:          func(a, b uint64) bool { return (a >= fakeOther) == (b >= fakeOther) },
		threadPointer: fakeThread,
	}
}

func assembled(t testing.TB, code string) []x86.Inst {
	t.Helper()
	b, err := hex.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	insts, bad := x86.Function(b, 0x1000)
	if bad != 0 {
		t.Fatalf("%d bytes of %s do not decode", bad, code)
	}
	return insts
}
