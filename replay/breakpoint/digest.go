package breakpoint

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64 (Collet, xxHash specification 0.1.1).
const (
	prime1 uint64 = 0x9e3779b185ebca87
	prime2 uint64 = 0xc2b2ae3d27d4eb4f
	prime3 uint64 = 0x165667b19e3779f9
	prime4 uint64 = 0x85ebca77c2b2ae63
	prime5 uint64 = 0x27d4eb2f165667c5
)

func digestRound(lane, word uint64) uint64 {
	return bits.RotateLeft64(lane+word*prime2, 31) * prime1
}

// digest computes dg_digest of agent/src/engine/small.c.
func digest(p []byte, seed uint64) uint64 {
	h := seed + prime5
	length := uint64(len(p))
	if len(p) >= 32 {
		lanes := [4]uint64{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}
		for ; len(p) >= 32; p = p[32:] {
			for i := range lanes {
				lanes[i] = digestRound(lanes[i], binary.LittleEndian.Uint64(p[8*i:]))
			}
		}
		h = bits.RotateLeft64(lanes[0], 1) + bits.RotateLeft64(lanes[1], 7) +
			bits.RotateLeft64(lanes[2], 12) + bits.RotateLeft64(lanes[3], 18)
		for _, lane := range lanes {
			h = (h^digestRound(0, lane))*prime1 + prime4
		}
	}
	return digestTail(h+length, p)
}

func digestTail(h uint64, p []byte) uint64 {
	for ; len(p) >= 8; p = p[8:] {
		h = bits.RotateLeft64(h^digestRound(0, binary.LittleEndian.Uint64(p)), 27)*prime1 + prime4
	}
	if len(p) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(p))*prime1, 23)*prime2 + prime3
		p = p[4:]
	}
	for _, b := range p {
		h = bits.RotateLeft64(h^uint64(b)*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
