// Package inflate decompresses zlib streams (RFC 1950, RFC 1951) whose whole
// input and output are in memory, as compressed ELF sections are. Without a
// window to keep and a reader to ask byte by byte it is about twice as fast as
// a streaming decoder, which is most of the time it takes to open hundreds of
// megabytes of debug information.
package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
)

// reportStep is how many bytes are read between two calls of consumed.
const reportStep = 4 << 20

// errBeyond is the cause of an Error where the input ends too early.
var errBeyond = errors.New("the input ends")

// Error says where a stream is malformed.
type Error struct {
	// Input and Output are the bytes consumed and produced before it.
	Input, Output int
	Err           error
}

func (e *Error) Error() string {
	return fmt.Sprintf("at byte %d of the stream and %d of the result: %v", e.Input, e.Output, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Zlib decompresses src into dst, which must be exactly filled, and compares
// the checksum. consumed, if not nil, is told from time to time how many
// bytes of src will not be read again. The error is an *Error.
func Zlib(dst, src []byte, consumed func(n int)) error {
	d := &decoder{src: src, dst: dst, consumed: consumed}
	err := d.zlib()
	if err != nil {
		return &Error{Input: d.pos, Output: d.out, Err: err}
	}
	return nil
}

// decoder holds bits of the input that were taken from src but not used, the
// next one lowest.
type decoder struct {
	src, dst []byte
	pos, out int
	bits     uint64
	count    uint // of valid bits
	consumed func(n int)
	told     int // what consumed was told last

	literals  [primarySize + 288*subSize]entry
	distances [primarySize + 32*subSize]entry
}

func (d *decoder) zlib() error {
	if len(d.src) < 2 {
		return errBeyond
	}
	if cmf, flg := d.src[0], d.src[1]; cmf&15 != 8 || flg&0x20 != 0 || (uint(cmf)<<8|uint(flg))%31 != 0 {
		return errors.New("no zlib header")
	}
	d.pos = 2
	for {
		last, err := d.block()
		if err != nil {
			return err
		}
		if last {
			break
		}
		if d.consumed != nil && d.pos-d.told > reportStep {
			d.told = d.pos - 8 // the bits at hand may be given back
			d.consumed(d.told)
		}
	}
	if d.out != len(d.dst) {
		return fmt.Errorf("the result has %d bytes instead of %d", d.out, len(d.dst))
	}
	d.align()
	if len(d.src)-d.pos < 4 {
		return errBeyond
	}
	if sum := binary.BigEndian.Uint32(d.src[d.pos:]); sum != adler32.Checksum(d.dst) {
		return errors.New("the checksum differs")
	}
	return nil
}

// refill makes at least n bits valid, n at most 56, unless the input ends.
func (d *decoder) refill(n uint) {
	for d.count < n && d.pos < len(d.src) {
		d.bits |= uint64(d.src[d.pos]) << d.count
		d.pos++
		d.count += 8
	}
}

func (d *decoder) take(n uint) (uint32, error) {
	d.refill(n)
	if d.count < n {
		return 0, errBeyond
	}
	v := uint32(d.bits & (1<<n - 1))
	d.bits >>= n
	d.count -= n
	return v, nil
}

// align drops the rest of a byte and gives whole bytes back.
func (d *decoder) align() {
	d.pos -= int(d.count / 8)
	d.bits, d.count = 0, 0
}

func (d *decoder) block() (last bool, err error) {
	head, err := d.take(3)
	if err != nil {
		return false, err
	}
	last = head&1 != 0
	switch head >> 1 {
	case 0:
		return last, d.stored()
	case 1:
		err = d.fixedTables()
	case 2:
		err = d.dynamicTables()
	default:
		err = errors.New("unknown kind of block")
	}
	if err != nil {
		return false, err
	}
	return last, d.compressed()
}

func (d *decoder) stored() error {
	d.align()
	if len(d.src)-d.pos < 4 {
		return errBeyond
	}
	n := int(binary.LittleEndian.Uint16(d.src[d.pos:]))
	if check := int(binary.LittleEndian.Uint16(d.src[d.pos+2:])); n != ^check&0xffff {
		return errors.New("the length of a stored block is damaged")
	}
	d.pos += 4
	if n > len(d.src)-d.pos {
		return errBeyond
	}
	if n > len(d.dst)-d.out {
		return errTooLong
	}
	copy(d.dst[d.out:], d.src[d.pos:d.pos+n])
	d.pos += n
	d.out += n
	return nil
}

var (
	errTooLong  = errors.New("the result is longer than claimed")
	errDistance = errors.New("a match refers to before the start")
	errCode     = errors.New("invalid code")
)

// compressed decodes a block's symbols: fast while both ends are far, and
// with a check for each step near them.
func (d *decoder) compressed() error {
	for {
		done, err := d.fast()
		if done || err != nil {
			return err
		}
		if done, err = d.symbol(); done || err != nil {
			return err
		}
	}
}

// symbol decodes one literal or match with every check.
func (d *decoder) symbol() (done bool, err error) {
	e, err := d.lookup(d.literals[:])
	if err != nil {
		return false, err
	}
	switch e.kind() {
	case kindEnd:
		return true, nil
	case kindValue:
		if d.out == len(d.dst) {
			return false, errTooLong
		}
		d.dst[d.out] = byte(e.value())
		d.out++
		return false, nil
	}
	extra, err := d.take(e.extra())
	if err != nil {
		return false, err
	}
	length := int(e.value() + extra)
	if e, err = d.lookup(d.distances[:]); err != nil {
		return false, err
	}
	if extra, err = d.take(e.extra()); err != nil {
		return false, err
	}
	distance := int(e.value() + extra)
	if distance > d.out {
		return false, errDistance
	}
	if length > len(d.dst)-d.out {
		return false, errTooLong
	}
	for range length {
		d.dst[d.out] = d.dst[d.out-distance]
		d.out++
	}
	return false, nil
}

func (d *decoder) lookup(table []entry) (entry, error) {
	d.refill(15)
	e := table[d.bits&(primarySize-1)]
	if e.kind() == kindTable {
		e = table[e.value()+uint32(d.bits>>primaryBits)&(subSize-1)]
	}
	n := e.length()
	if n == 0 {
		return 0, errCode
	}
	if n > d.count {
		return 0, errBeyond
	}
	d.bits >>= n
	d.count -= n
	return e, nil
}

const (
	// maxMatch is the longest match, slack what the word-wise copy may write
	// beyond it.
	maxMatch = 258
	slack    = 16
)

// fast decodes while at least 16 bytes of input and a longest match of
// output are left, which spares the checks. One refill of 56 bits is enough
// for three literals of up to 11 bits, or for a match with all its extra
// bits (15+5+15+13). done tells that the block has ended.
func (d *decoder) fast() (done bool, err error) {
	src, dst := d.src, d.dst
	pos, out, bits, count := d.pos, d.out, d.bits, d.count
	defer func() { d.pos, d.out, d.bits, d.count = pos, out, bits, count }()
	literals, distances := &d.literals, &d.distances
	for pos+16 <= len(src) && out+maxMatch+slack <= len(dst) {
		bits |= binary.LittleEndian.Uint64(src[pos:]) << count
		pos += int((63 - count) >> 3)
		count |= 56
		e := literals[bits&(primarySize-1)]
		for range 2 {
			if e&(kindMask|lengthMask) == 0 || e.kind() != kindValue {
				break
			}
			dst[out] = byte(e >> valueShift)
			out++
			bits >>= e.length()
			count -= e.length()
			e = literals[bits&(primarySize-1)]
		}
		if count < 48 && e.kind() != kindValue {
			continue
		}
		if e.kind() == kindTable {
			e = literals[e.value()+uint32(bits>>primaryBits)&(subSize-1)]
		}
		if e.length() == 0 {
			return false, errCode
		}
		bits >>= e.length()
		count -= e.length()
		switch e.kind() {
		case kindEnd:
			bits &= 1<<count - 1
			return true, nil
		case kindValue:
			dst[out] = byte(e >> valueShift)
			out++
			continue
		}
		length := int(e.value() + uint32(bits)&(1<<e.extra()-1))
		bits >>= e.extra()
		count -= e.extra()
		e = distances[bits&(primarySize-1)]
		if e.kind() == kindTable {
			e = distances[e.value()+uint32(bits>>primaryBits)&(subSize-1)]
		}
		if e.length() == 0 {
			return false, errCode
		}
		bits >>= e.length()
		distance := int(e.value() + uint32(bits)&(1<<e.extra()-1))
		bits >>= e.extra()
		count -= e.length() + e.extra()
		if distance > out {
			return false, errDistance
		}
		copyMatch(dst, out, distance, length)
		out += length
	}
	// what refill took beyond count must not stay: it would be or-ed again
	bits &= 1<<count - 1
	return false, nil
}

// copyMatch repeats what is distance back; it may write up to slack bytes
// behind the match.
func copyMatch(dst []byte, out, distance, length int) {
	from := out - distance
	if distance >= 8 {
		to := dst[out : out+length+8]
		back := dst[from : from+length+8]
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(back[i:]))
		}
		return
	}
	to := dst[out : out+length]
	back := dst[from:]
	for i := range to {
		to[i] = back[i]
	}
}
