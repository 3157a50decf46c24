package gdbserver

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
)

// A packet that is written is read again, whatever its bytes are.
func FuzzWritten(f *testing.F) {
	f.Add([]byte("qSupported"))
	f.Add([]byte("$#}*\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > mostPacket {
			t.Skip()
		}
		var b bytes.Buffer
		if err := writePacket(&b, data); err != nil {
			t.Fatal(err)
		}
		in, err := readInput(bufio.NewReader(&b))
		if err != nil || !bytes.Equal(in.data, data) {
			t.Errorf("%q came back as %q: %v", data, in.data, err)
		}
	})
}

// Hostile input ends the connection or is answered; it neither panics nor uses much memory.
func FuzzInput(f *testing.F) {
	f.Add([]byte("+$qSupported:xmlRegisters=i386#e8\x03$m0,10#2a"))
	f.Add([]byte("$}"))
	f.Add([]byte("$#00$#zz"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			in, err := readInput(r)
			if len(in.data) > mostPacket {
				t.Fatalf("a packet of %d bytes", len(in.data))
			}
			if err != nil && !errors.Is(err, errPacket) {
				return
			}
			parsePair(string(in.data))
			parseThread(string(in.data))
			new(points).watch('2', uint64(len(in.data)), 8, true)
		}
	})
}

func TestLongPacket(t *testing.T) {
	in := "$" + strings.Repeat("a", 2*mostPacket) + "#00"
	if _, err := readInput(bufio.NewReader(strings.NewReader(in))); err == nil || errors.Is(err, errPacket) {
		t.Errorf("a long packet: %v", err)
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct {
		addr, length uint64
		sizes        []int
	}{
		{0x1000, 8, []int{8}}, {0x1000, 4, []int{4}}, {0x1004, 8, []int{4, 4}}, {0x1001, 8, []int{1, 2, 4, 1}},
		{0x1000, 32, []int{8, 8, 8, 8}}, {0x1000, 33, nil}, {0x1000, 1 << 40, nil},
	} {
		var sizes []int
		at := test.addr
		for _, w := range words(test.addr, test.length, true) {
			if uint64(w.Addr) != at || at%uint64(w.Size) != 0 || !w.Writes {
				t.Errorf("%#x of %d bytes: %+v", test.addr, test.length, w)
			}
			at += uint64(w.Size)
			sizes = append(sizes, w.Size)
		}
		if len(sizes) != len(test.sizes) {
			t.Errorf("%#x of %d bytes is watched by %v", test.addr, test.length, sizes)
		}
	}
}

// gdb's numbers of signals differ from each other, but for those that gdb does not know.
func TestSignalNumbers(t *testing.T) {
	of := map[int]int{}
	for signal := 1; signal <= 64; signal++ {
		n := gdbSignal(signal)
		if before := of[n]; before != 0 {
			t.Errorf("signals %d and %d are gdb's %d", before, signal, n)
		}
		of[n] = signal
	}
	if of[unknownSignal] != 16 { // SIGSTKFLT
		t.Errorf("gdb does not know signal %d", of[unknownSignal])
	}
}
