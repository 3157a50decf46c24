package inflate

import "errors"

// entry is a decoded symbol: how many bits its code has, what it is, how many
// extra bits follow, and its value. 0 is no symbol.
type entry uint32

const (
	lengthMask = 0xf
	kindShift  = 4
	kindMask   = 3 << kindShift
	extraShift = 8
	valueShift = 16
)

const (
	kindValue = iota // a literal, or a symbol of the code lengths' code
	kindBase         // a length or distance, to which extra bits are added
	kindEnd          // the end of the block
	kindTable        // value is where the table for the longer codes begins
)

func (e entry) length() uint  { return uint(e & lengthMask) }
func (e entry) kind() entry   { return e >> kindShift & 3 }
func (e entry) extra() uint   { return uint(e>>extraShift) & 0xf }
func (e entry) value() uint32 { return uint32(e >> valueShift) }

// Codes of up to primaryBits are looked up at once; longer ones, of up to 15
// bits, in a second table.
const (
	primaryBits = 11
	primarySize = 1 << primaryBits
	subSize     = 1 << (15 - primaryBits)
)

var (
	lengthBase = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59,
		67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase    = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
		1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

func literalEntry(symbol int) entry {
	switch {
	case symbol < 256:
		return entry(symbol)<<valueShift | kindValue<<kindShift
	case symbol == 256:
		return kindEnd << kindShift
	case symbol < 286:
		n := symbol - 257
		return entry(lengthBase[n])<<valueShift | entry(lengthExtra[n])<<extraShift | kindBase<<kindShift
	}
	return 0
}

func distanceEntry(symbol int) entry {
	if symbol >= 30 {
		return 0
	}
	extra := max(symbol/2-1, 0)
	return entry(distBase[symbol])<<valueShift | entry(extra)<<extraShift | kindBase<<kindShift
}

func valueEntry(symbol int) entry { return entry(symbol) << valueShift }

// build fills a table from the lengths of the symbols' codes (RFC 1951
// section 3.2.2). Only a code of one symbol, or of none, may be incomplete; it
// leaves entries of 0.
func build(table []entry, lengths []uint8, of func(symbol int) entry) error {
	clear(table)
	var counts, next [16]int
	for _, n := range lengths {
		counts[n]++
	}
	code, left := 0, 1
	for n := 1; n <= 15; n++ {
		left = left<<1 - counts[n]
		if left < 0 {
			return errors.New("a code has too many symbols")
		}
		next[n] = code
		code = (code + counts[n]) << 1
	}
	if left > 0 && len(lengths)-counts[0] > 0 && (len(lengths)-counts[0] != 1 || counts[1] != 1) {
		return errors.New("an incomplete code")
	}
	free := primarySize
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		e := of(symbol)
		reversed := reverse(next[n], uint(n))
		next[n]++
		if e == 0 && symbol > 0 {
			continue // a symbol that must not occur
		}
		e |= entry(n)
		if n <= primaryBits {
			for i := reversed; i < primarySize; i += 1 << n {
				table[i] = e
			}
			continue
		}
		slot := reversed & (primarySize - 1)
		if table[slot] == 0 {
			if free+subSize > len(table) {
				return errors.New("a code has too many long symbols")
			}
			table[slot] = entry(free)<<valueShift | kindTable<<kindShift
			free += subSize
		}
		sub := table[int(table[slot].value()):][:subSize]
		for i := reversed >> primaryBits; i < subSize; i += 1 << (n - primaryBits) {
			sub[i] = e
		}
	}
	return nil
}

func reverse(code int, n uint) int {
	r := 0
	for range n {
		r = r<<1 | code&1
		code >>= 1
	}
	return r
}

func (d *decoder) fixedTables() error {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144, i >= 280:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		default:
			lengths[i] = 7
		}
	}
	if err := build(d.literals[:], lengths[:], literalEntry); err != nil {
		return err
	}
	var distances [32]uint8
	for i := range distances {
		distances[i] = 5
	}
	return build(d.distances[:], distances[:], distanceEntry)
}

func (d *decoder) dynamicTables() error {
	head, err := d.take(14)
	if err != nil {
		return err
	}
	literals, distances, codes := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if literals > 286 {
		return errors.New("a block with too many symbols")
	}
	var codeLengths [19]uint8
	for _, symbol := range codeOrder[:codes] {
		n, err := d.take(3)
		if err != nil {
			return err
		}
		codeLengths[symbol] = uint8(n)
	}
	// the table of distances serves for the code of the code lengths
	if err := build(d.distances[:], codeLengths[:], valueEntry); err != nil {
		return err
	}
	var lengths [286 + 32]uint8
	if err := d.readLengths(lengths[:literals+distances]); err != nil {
		return err
	}
	if lengths[256] == 0 {
		return errors.New("a block without an end")
	}
	if err := build(d.literals[:], lengths[:literals], literalEntry); err != nil {
		return err
	}
	return build(d.distances[:], lengths[literals:literals+distances], distanceEntry)
}

// readLengths reads the run-length coded lengths of both codes (RFC 1951
// section 3.2.7).
func (d *decoder) readLengths(lengths []uint8) error {
	for i := 0; i < len(lengths); {
		e, err := d.lookup(d.distances[:])
		if err != nil {
			return err
		}
		symbol := e.value()
		if symbol < 16 {
			lengths[i] = uint8(symbol)
			i++
			continue
		}
		var repeated uint8
		bits, base := uint(2), 3
		switch symbol {
		case 16:
			if i == 0 {
				return errors.New("a repeated length without one before")
			}
			repeated = lengths[i-1]
		case 17:
			bits = 3
		case 18:
			bits, base = 7, 11
		}
		extra, err := d.take(bits)
		if err != nil {
			return err
		}
		n := base + int(extra)
		if n > len(lengths)-i {
			return errors.New("too many code lengths")
		}
		for range n {
			lengths[i] = repeated
			i++
		}
	}
	return nil
}
