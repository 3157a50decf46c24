package x86

import (
	"testing"
)

// sameOutline compares Next with Decode, twice: the second answer is remembered.
func sameOutline(t *testing.T, o *Outliner, code []byte, pc uint64) int {
	t.Helper()
	inst, err := Decode(code, pc)
	for range 2 {
		out, outErr := o.Next(code, pc)
		if (err == nil) != (outErr == nil) || err != nil && errorLen(err) != errorLen(outErr) {
			t.Fatalf("% x: %v, Decode says %v", code[:min(len(code), maxLen)], outErr, err)
		}
		if want := (Outline{inst.Len, inst.Target, inst.HasTarget}); err == nil && out != want {
			t.Fatalf("% x (%s): %+v, want %+v", inst.Bytes, inst.Text(), out, want)
		}
	}
	if err != nil {
		return errorLen(err)
	}
	return inst.Len
}

// TestOutlineOfLibrary scans the C library from its start, where it finds
// instructions, and from within instructions, where it finds arbitrary bytes.
func TestOutlineOfLibrary(t *testing.T) {
	code, addr, _ := libcText(t)
	code = code[:min(len(code), 300_000)]
	o := &Outliner{}
	for at := 0; at < len(code); {
		at += sameOutline(t, o, code[at:], addr+uint64(at))
	}
	for at := 0; at < min(len(code), 50_000); at++ {
		sameOutline(t, o, code[at:], addr+uint64(at))
	}
	known := 0
	for _, slot := range o.heads {
		if answer := slot >> answerShift; answer == answerPlain || answer == answerTarget {
			known++
		}
	}
	if known < 1000 {
		t.Errorf("%d heads are known: nearly everything was left to Decode", known)
	}
}

// TestOutlineOfEncodings has each opcode with each prefix and ModRM, followed
// by bytes that reveal a wrong length.
func TestOutlineOfEncodings(t *testing.T) {
	o := &Outliner{}
	n := 0
	encodings(func(code []byte) bool {
		if n++; n%7 != 0 {
			return true
		}
		var long [maxLen + 9]byte
		for i := range long {
			long[i] = byte(0x11 * (i + n))
		}
		copy(long[:], code)
		sameOutline(t, o, long[:], 0x7f0000001000)
		return true
	})
}

func FuzzOutline(f *testing.F) {
	n := 0
	encodings(func(code []byte) bool {
		if n++; n%1997 == 0 {
			f.Add(code)
		}
		return n < 400_000
	})
	o := &Outliner{}
	f.Fuzz(func(t *testing.T, code []byte) {
		sameOutline(t, o, append(code, make([]byte, maxLen+1)...), 0x7f0000001000)
	})
}

func BenchmarkOutline(b *testing.B) {
	code, addr, _ := libcText(b)
	o := &Outliner{}
	count := 0
	for b.Loop() {
		for at := 0; at < len(code); count++ {
			out, err := o.Next(code[at:], addr+uint64(at))
			if err != nil {
				out.Len = errorLen(err)
			}
			at += out.Len
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count), "ns/inst")
}
