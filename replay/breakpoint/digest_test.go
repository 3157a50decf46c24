package breakpoint

import "testing"

// The values are those of github.com/cespare/xxhash/v2 and of dg_digest.
func TestDigest(t *testing.T) {
	text := make([]byte, 101)
	for i := range text {
		text[i] = byte(i*7 + 1)
	}
	for _, test := range []struct {
		length     int
		seed, want uint64
	}{
		{0, 0, 0xef46db3751d8e999},
		{1, 0x123456789abc, 0x10128a009cd1d1f0},
		{5, 0x2468acf13578, 0x9c739c8a59533e6},
		{8, 0x369d0369d034, 0xe4630aa470e5b225},
		{31, 0x48d159e26af0, 0x6d4ac3af1f43a71e},
		{32, 0x5b05b05b05ac, 0x79cf4cc4c73389f6},
		{33, 0x6d3a06d3a068, 0x548bd3a5e579d55b},
		{63, 0x7f6e5d4c3b24, 0xde2238fd64b1f6ba},
		{100, 0x91a2b3c4d5e0, 0xbcda72a069c6e5e3},
		{101, 0xa3d70a3d709c, 0xcdbecf16a824d9f1},
	} {
		if got := digest(text[:test.length], test.seed); got != test.want {
			t.Errorf("digest of %d bytes with seed %#x is %#x, want %#x", test.length, test.seed, got, test.want)
		}
	}
}
