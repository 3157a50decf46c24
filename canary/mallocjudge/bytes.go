package mallocjudge

import (
	"encoding/binary"
	"encoding/hex"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// bytesAt reads memory; nil: it cannot be read.
func (j *judge) bytesAt(at evidence.Addr, n int) *evidence.Bytes {
	data := make([]byte, n)
	got, _ := j.Process.ReadMemory(at, data)
	if got == 0 {
		return nil
	}
	b := asBytes(data[:got])
	return &b
}

func asBytes(data []byte) evidence.Bytes {
	return evidence.Bytes{Hex: hex.EncodeToString(data), Text: wording.Printable(data)}
}

func wordBytes(words ...uint64) evidence.Bytes {
	var data []byte
	for _, w := range words {
		data = binary.LittleEndian.AppendUint64(data, w)
	}
	return asBytes(data)
}

// continues reports whether the bytes at a boundary look as if one write had gone over it: before are those before
// it, after those that were overwritten. was is the word before the write, 0 if it is not known.
func continues(before, after []byte, was uint64) bool {
	if len(before) < 8 || len(after) < 8 {
		return false
	}
	last, next := binary.LittleEndian.Uint64(before[len(before)-8:]), binary.LittleEndian.Uint64(after)
	switch {
	case last == 0:
		return next == 0 && allZero(before)
	case was != 0 && next != was && partly(next, was):
		return before[len(before)-1] != 0 // a write that ended within the word
	case last == next, texts(last) && texts(next):
		return true
	case texts(last) && textEnd(next):
		return true
	case small(last) && small(next), pointerLike(last) && pointerLike(next):
		return true
	}
	return repeats(before, after)
}

func allZero(data []byte) bool {
	for _, c := range data {
		if c != 0 {
			return false
		}
	}
	return true
}

// partly reports whether two words differ in their first bytes only.
func partly(a, b uint64) bool {
	const upper = 32
	return a>>upper == b>>upper
}

func word(data []byte) uint64 { return binary.LittleEndian.Uint64(data) }

// texts reports whether all bytes of a word are characters of text.
func texts(w uint64) bool { return textLength(w) == 8 }

// textEnd reports whether a word is the rest of a text with the byte that ends it.
func textEnd(w uint64) bool {
	n := textLength(w)
	return n < 8 && byte(w>>(8*n)) == 0
}

func textLength(w uint64) int {
	n := 0
	for ; n < 8; n++ {
		c := byte(w >> (8 * n))
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			break
		}
	}
	return n
}

// small reports whether a word is two small numbers of 32 bits, one of which is not 0.
func small(w uint64) bool {
	const limit = 1 << 20
	low, high := int32(w), int32(w>>32)
	return w != 0 && high != 0 && low > -limit && low < limit && high > -limit && high < limit
}

// pointerLike reports whether a word is an address of the program's half of memory, and not a small number.
func pointerLike(w uint64) bool { return w >= 1<<32 && w < 1<<47 }

// repeats reports whether a pattern of one to eight bytes goes over the boundary.
func repeats(before, after []byte) bool {
	data := append(append([]byte{}, before[len(before)-8:]...), after[:8]...)
	for _, period := range []int{1, 2, 4, 8} {
		same := true
		for i := period; i < len(data) && same; i++ {
			same = data[i] == data[i-period]
		}
		if same && data[8] != 0 {
			return true
		}
	}
	return false
}
