package unwind

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
)

// emptyMemory has nothing.
type emptyMemory struct{}

func (emptyMemory) ReadMemory(addr evidence.Addr, _ []byte) (int, error) {
	return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
}

// The frame pointer of a damaged stack may be 0, and the word below it may be
// read when the window holds the first page of memory.
func TestWordBelowZero(t *testing.T) {
	s := stackReader{memory: emptyMemory{}, spent: &effort{}, size: stackWindow}
	below := evidence.Addr(0)
	below -= 8
	if v, err := s.word(below); err == nil {
		t.Errorf("the word at %v is %#x", below, v)
	}
}
