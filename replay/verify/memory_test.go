package verify

import "testing"

func TestCompareNumbers(t *testing.T) {
	for _, x := range []struct {
		have, want string
		order      int
		apart      uint64
	}{
		{"\x05", "\x03", 1, 2},
		{"\x00\x01", "\xff\x00", 1, 1},
		{"\x03\x00", "\x05\x01", -1, 0x102},
		{"\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x00\x02", 0, 0}, // the ninth byte
		{"\xff\xff\xff\xff\xff\xff\xff\xff", "\x00\x00\x00\x00\x00\x00\x00\x00", 1, ^uint64(0)},
	} {
		if order, apart := compareNumbers([]byte(x.have), []byte(x.want)); order != x.order || apart != x.apart {
			t.Errorf("%x and %x: %d, %d; want %d, %d", x.have, x.want, order, apart, x.order, x.apart)
		}
	}
}
