package stackjudge

import (
	"bytes"
	"strings"
	"testing"

	"diagnose/evidence"
)

// frameAt is where the window of a test begins; the array is at its start, of size bytes, and the word follows after a
// saved register.
const frameAt = evidence.Addr(0x7ffe1000)

func runIn(data []byte, size, element int, kind evidence.FrameWord) (run, bool) {
	w := &window{frameAt, data, make([]bool, len(data))}
	x := &array{addr: frameAt, size: uint64(size), element: element}
	return w.runOf(x, &word{kind: kind, addr: frameAt + evidence.Addr(size) + 8})
}

// TestRunOf: contents are one run only if they go over the end of the array and over enough of the word.
func TestRunOf(t *testing.T) {
	text := "the quick brown fox jumps over the lazy dog, again and again"
	zeros := strings.Repeat("\x00", 16)
	numbers := func(f func(i int) int) string {
		var b strings.Builder
		for i := range 10 {
			v := f(i)
			b.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)})
		}
		return b.String()
	}
	for _, test := range []struct {
		name, data string
		element    int
		word       evidence.FrameWord
		want       evidence.RunKind
		end        int
	}{
		{"a text over all", text[:40] + zeros, 1, evidence.WordReturnAddress, evidence.RunText, 40},
		{"a text that ends in the word", text[:27] + zeros, 1, evidence.WordReturnAddress, evidence.RunText, 27},
		{"a text that ends in a saved register's word", text[:27] + zeros, 1, evidence.WordSavedRegister, "", 0},
		{"half of a saved register's word", text[:30] + zeros, 1, evidence.WordSavedRegister, evidence.RunText, 30},
		{"a text that ends before the word", text[:23] + zeros + zeros, 1, evidence.WordReturnAddress, "", 0},
		{"a text with a gap", text[:20] + "\x00\x01" + text[22:40] + zeros, 1, evidence.WordReturnAddress, "", 0},
		{"a text after the array only", "\x01\x02" + zeros[:14] + text[:24], 1, evidence.WordReturnAddress, "", 0},
		{"a pattern", strings.Repeat("\xee\x01", 24), 1, evidence.WordReturnAddress, evidence.RunPattern, 48},
		{"zeros", zeros + zeros + zeros, 1, evidence.WordReturnAddress, "", 0},
		{"a progression", numbers(func(i int) int { return 1000000 + i*5000000 }), 4, evidence.WordReturnAddress, evidence.RunProgression, 40},
		{"small numbers", numbers(func(i int) int { return i*i + 1 }), 4, evidence.WordReturnAddress, evidence.RunNumbers, 40},
		{"numbers and a zero in the word", numbers(func(i int) int { return (i*i + 1) % 50 }), 4, evidence.WordReturnAddress, "", 0},
		{"small numbers of bytes", numbers(func(i int) int { return i*i + 1 }), 0, evidence.WordReturnAddress, "", 0},
	} {
		r, ok := runIn([]byte(test.data), 16, test.element, test.word)
		if ok != (test.want != "") || ok && (r.kind != test.want || r.end != frameAt+evidence.Addr(test.end)) {
			t.Errorf("%s: %v %+v", test.name, ok, r)
		}
	}
}

// TestOther: the bytes of other variables do not end a run, and alone make none.
func TestOther(t *testing.T) {
	data := []byte("sixteen letters.\x01\x00\x00\x00rest, and over the word\x00\x00\x00\x00\x00\x00")
	w := &window{frameAt, data, make([]bool, len(data))}
	x, above := &array{addr: frameAt, size: 16, element: 1}, &word{kind: evidence.WordReturnAddress, addr: frameAt + 24}
	if _, ok := w.runOf(x, above); ok {
		t.Error("the number is not a variable's, and ends the run")
	}
	for i := 16; i < 20; i++ {
		w.other[i] = true
	}
	if r, ok := w.runOf(x, above); !ok || r.kind != evidence.RunText {
		t.Errorf("%v %+v", ok, r)
	}
}

// FuzzRunOf: runs are within the window, and over the word.
func FuzzRunOf(f *testing.F) {
	f.Add([]byte("the quick brown fox jumps over the lazy dog"), uint8(16), uint8(1))
	f.Add(bytes.Repeat([]byte{7, 0, 0, 0}, 20), uint8(32), uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, size, element uint8) {
		elements := []int{0, 1, 2, 4, 8}
		end := frameAt + evidence.Addr(len(data))
		r, ok := runIn(data, int(size), elements[int(element)%len(elements)], evidence.WordReturnAddress)
		if ok && (r.start < frameAt || r.start >= frameAt+evidence.Addr(size) || r.end > end || r.end <= frameAt+evidence.Addr(size)+8) {
			t.Errorf("the run is %+v in a window to %v", r, end)
		}
	})
}
