package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"

	"github.com/ulikunitz/xz/lzma"
)

// The .xz container is read here and only its LZMA2 payload by the library,
// because the library allocates whatever dictionary a block header claims
// (up to 4 GiB), and a failed allocation ends a Go program. Sections refer to
// "The .xz File Format", version 1.2.0.
const (
	xzHeader  = 12 // also the footer's size
	xzMagic   = "\xfd7zXZ\x00"
	xzEnd     = "YZ"
	xzMaxDict = 256 << 20
	// xzMaxBlocks bounds the index; writers make blocks of megabytes.
	xzMaxBlocks = 1 << 16
)

var errXZ = errors.New("damaged xz stream")

// xzBlock is a record of the index (section 4.3).
type xzBlock struct{ unpadded, size uint64 }

// unxz decompresses a file of one xz stream.
func unxz(b []byte) ([]byte, error) {
	check, blocks, err := xzIndex(b)
	if err != nil {
		return nil, err
	}
	total := uint64(0)
	for _, k := range blocks {
		if total += k.size; !plausible(k.size, uint64(len(b))) || !plausible(total, uint64(len(b))) {
			return nil, fmt.Errorf("%d bytes claim to hold %d", len(b), total)
		}
	}
	out := make([]byte, 0, total)
	at := uint64(xzHeader)
	for _, k := range blocks {
		padded := (k.unpadded + 3) &^ 3
		if padded < k.unpadded || padded > uint64(len(b))-at {
			return nil, errXZ
		}
		data, err := k.decode(b[at:at+padded], check)
		if err != nil {
			return nil, fmt.Errorf("block at %#x: %w", at, err)
		}
		out = append(out, data...)
		at += padded
	}
	return out, nil
}

// xzIndex reads header, footer and index (sections 2.1 and 4) and returns
// the type of check and the blocks.
func xzIndex(b []byte) (check byte, blocks []xzBlock, err error) {
	if len(b) < 2*xzHeader || string(b[:6]) != xzMagic {
		return 0, nil, errors.New("not an xz stream")
	}
	foot := b[len(b)-xzHeader:]
	if string(foot[10:]) != xzEnd || !bytes.Equal(foot[8:10], b[6:8]) || b[6] != 0 ||
		crc32.ChecksumIEEE(b[6:8]) != binary.LittleEndian.Uint32(b[8:]) ||
		crc32.ChecksumIEEE(foot[4:10]) != binary.LittleEndian.Uint32(foot) {
		return 0, nil, errXZ
	}
	size := (uint64(binary.LittleEndian.Uint32(foot[4:])) + 1) * 4
	if size > uint64(len(b)-2*xzHeader) {
		return 0, nil, errXZ
	}
	index := b[uint64(len(b)-xzHeader)-size : len(b)-xzHeader]
	sum := len(index) - 4
	if crc32.ChecksumIEEE(index[:sum]) != binary.LittleEndian.Uint32(index[sum:]) || index[0] != 0 {
		return 0, nil, errXZ
	}
	rest := index[1:sum]
	count, rest, ok := xzNumber(rest)
	if !ok || count > xzMaxBlocks {
		return 0, nil, errXZ
	}
	for range count {
		var k xzBlock
		if k.unpadded, rest, ok = xzNumber(rest); !ok {
			return 0, nil, errXZ
		}
		if k.size, rest, ok = xzNumber(rest); !ok {
			return 0, nil, errXZ
		}
		blocks = append(blocks, k)
	}
	return b[7] & 0xf, blocks, nil
}

// xzNumber reads a multibyte integer (section 1.2).
func xzNumber(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 9 {
		return 0, nil, false
	}
	return v, b[n:], true
}

// xzCheckSize is the size of each type of check (section 2.1.1.2).
var xzCheckSize = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// decode unpacks a block: header, payload, padding to four bytes, check.
func (k xzBlock) decode(b []byte, check byte) ([]byte, error) {
	header, dict, err := xzBlockHeader(b)
	if err != nil {
		return nil, err
	}
	sum := len(b) - xzCheckSize[check]
	end := int(k.unpadded) - xzCheckSize[check]
	if end < header {
		return nil, errXZ
	}
	// A dictionary larger than the contents is never filled.
	dict = min(dict, max(k.size, lzma.MinDictCap))
	if dict > xzMaxDict {
		return nil, fmt.Errorf("a dictionary of %d bytes", dict)
	}
	payload := b[header:end]
	r, err := lzma.Reader2Config{DictCap: int(dict)}.NewReader2(bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	data, err := readExactly(r, k.size)
	if err != nil {
		return nil, err
	}
	return data, xzVerify(data, b[sum:], check)
}

// CheckXZ rejects an xz stream, of which b is the start, if its first block
// claims an absurdly large dictionary: the library would allocate it.
func CheckXZ(b []byte) error {
	if len(b) <= xzHeader || b[xzHeader] == 0 {
		return nil // it ends before its first block, or has none
	}
	_, dict, err := xzBlockHeader(b[xzHeader:])
	if err == nil && dict > xzMaxDict {
		err = fmt.Errorf("a dictionary of %d bytes", dict)
	}
	return err
}

// xzBlockHeader returns a block header's size and its LZMA2 dictionary's
// (section 3.1); other filters are not used for debug information.
func xzBlockHeader(b []byte) (size int, dict uint64, err error) {
	if len(b) < 8 || b[0] == 0 {
		return 0, 0, errXZ
	}
	size = (int(b[0]) + 1) * 4
	if size > len(b) || crc32.ChecksumIEEE(b[:size-4]) != binary.LittleEndian.Uint32(b[size-4:]) {
		return 0, 0, errXZ
	}
	flags, rest, ok := b[1], b[2:size-4], true
	for _, present := range []byte{0x40, 0x80} { // compressed, uncompressed size
		if flags&present != 0 && ok {
			_, rest, ok = xzNumber(rest)
		}
	}
	const lzma2 = 0x21
	if !ok || len(rest) < 3 {
		return 0, 0, errXZ
	}
	if flags&3 != 0 || rest[0] != lzma2 || rest[1] != 1 {
		return 0, 0, errors.New("a filter other than LZMA2")
	}
	capacity, err := lzma.DecodeDictCap(rest[2])
	return size, uint64(capacity), err
}

// xzVerify compares the checksums in use (SHA-256 is an option of xz that is
// not used for debug information; it is not compared).
func xzVerify(data, stored []byte, check byte) error {
	same := true
	switch check {
	case 1:
		same = crc32.ChecksumIEEE(data) == binary.LittleEndian.Uint32(stored)
	case 4:
		same = crc64.Checksum(data, crc64.MakeTable(crc64.ECMA)) == binary.LittleEndian.Uint64(stored)
	}
	if !same {
		return errors.New("wrong checksum")
	}
	return nil
}
