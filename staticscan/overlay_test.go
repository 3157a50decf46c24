package staticscan

import (
	"bytes"
	"testing"

	"diagnose/evidence"
)

// What was overwritten is read as it was, in part as well, and nothing else.
func TestOverlay(t *testing.T) {
	o := overlay{fakeMemory{0x100: []byte{1, 2, 3, 4, 5, 6, 7, 8}}, Overwritten{Addr: 0x102, Data: []byte{0xa, 0xb}}}
	for _, test := range []struct {
		at   evidence.Addr
		want []byte
	}{
		{0x100, []byte{1, 2, 0xa, 0xb, 5, 6, 7, 8}},
		{0x103, []byte{0xb, 5}},
		{0x104, []byte{5, 6}},
	} {
		got := make([]byte, len(test.want))
		if n, err := o.ReadMemory(test.at, got); err != nil || n != len(got) || !bytes.Equal(got, test.want) {
			t.Errorf("%v: %x (%d, %v), want %x", test.at, got, n, err, test.want)
		}
	}
	if _, err := o.ReadMemory(0x200, make([]byte, 1)); err == nil {
		t.Error("memory that is not there was read")
	}
}
