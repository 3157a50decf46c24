package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// maxScalar is the size of the widest scalar: a complex long double.
const maxScalar = 32

// scalar formats the bytes of a scalar.
func (w *formatter) scalar(data []byte, t debuginfo.Type) evidence.Value {
	if int64(len(data)) < t.Size() {
		return evidence.NoValue(fmt.Sprintf("only %d of its %d bytes are known", len(data), t.Size()))
	}
	if size := t.Size(); size > 0 {
		data = data[:size]
	}
	switch t.Kind() {
	case debuginfo.KindBool:
		return evidence.Value{Text: boolText(data)}
	case debuginfo.KindChar:
		return evidence.Value{Text: charText(data, isSigned(t))}
	case debuginfo.KindInt:
		return evidence.Value{Text: intText(data, true)}
	case debuginfo.KindUint:
		return evidence.Value{Text: intText(data, false)}
	case debuginfo.KindFloat:
		return evidence.Value{Text: floatText(data)}
	case debuginfo.KindComplex:
		half := len(data) / 2
		return evidence.Value{Text: floatText(data[:half]) + " + " + floatText(data[half:]) + "i"}
	case debuginfo.KindEnum:
		return evidence.Value{Text: enumText(data, t)}
	case debuginfo.KindPointer:
		if len(data) == 8 {
			addr := evidence.Addr(binary.LittleEndian.Uint64(data))
			return evidence.Value{Text: addr.String() + w.symbol(addr), Address: &addr}
		}
	case debuginfo.KindVoid:
		return evidence.Value{Text: "void"}
	}
	return evidence.Value{Text: "0x" + hexBytes(data)}
}

// hexBytes writes a little-endian number.
func hexBytes(data []byte) string {
	var b strings.Builder
	for i := len(data) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%02x", data[i])
	}
	return b.String()
}

// unsignedOf and signedOf take at most 8 bytes.
func unsignedOf(data []byte) uint64 {
	var wide [8]byte
	copy(wide[:], data)
	return binary.LittleEndian.Uint64(wide[:])
}

func signedOf(data []byte) int64 {
	if len(data) == 0 || len(data) >= 8 {
		return int64(unsignedOf(data))
	}
	shift := 64 - 8*len(data)
	return int64(unsignedOf(data)<<shift) >> shift
}

func boolText(data []byte) string {
	switch v := unsignedOf(data); v {
	case 0:
		return "false"
	case 1:
		return "true"
	default:
		return fmt.Sprintf("%d (not a valid bool)", v)
	}
}

func intText(data []byte, signed bool) string {
	if len(data) <= 8 {
		if signed {
			return strconv.FormatInt(signedOf(data), 10)
		}
		return strconv.FormatUint(unsignedOf(data), 10)
	}
	digits, _ := new(big.Int).SetString(hexBytes(data), 16)
	if signed && data[len(data)-1]&0x80 != 0 {
		digits.Sub(digits, new(big.Int).Lsh(big.NewInt(1), uint(8*len(data))))
	}
	return digits.String()
}

// signed is implemented by types that know their signedness.
type signed interface{ Signed() bool }

// isSigned returns the signedness of an integer, character or enumeration type.
// For characters that do not know it, the name decides: plain char is signed on
// x86-64 (System V ABI, figure 3.1), other widths are not.
func isSigned(t debuginfo.Type) bool {
	if s, ok := t.(signed); ok {
		return s.Signed()
	}
	if t.Kind() != debuginfo.KindChar {
		return t.Kind() == debuginfo.KindInt || t.Kind() == debuginfo.KindEnum
	}
	name := t.Name()
	return strings.Contains(name, "char") && !strings.Contains(name, "unsigned") && t.Size() == 1
}

func charText(data []byte, signed bool) string {
	v := int64(unsignedOf(data))
	if signed {
		v = signedOf(data)
	}
	r := rune(unsignedOf(data))
	if len(data) == 1 && r >= 0x80 {
		return fmt.Sprintf("%d '\\x%02x'", v, r)
	}
	return fmt.Sprintf("%d %s", v, quoteChar(r))
}

func floatText(data []byte) string {
	switch len(data) {
	case 4:
		return floatDigits(float64(math.Float32frombits(binary.LittleEndian.Uint32(data))), 32)
	case 8:
		return floatDigits(math.Float64frombits(binary.LittleEndian.Uint64(data)), 64)
	case 10, 12, 16:
		return extendedText(data)
	case 2:
		return "0x" + hexBytes(data) + " (16-bit float)"
	}
	return "0x" + hexBytes(data)
}

func floatDigits(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

// extendedText formats the x87 80-bit format: a 64-bit significand with its
// integer bit, then sign and a 15-bit exponent biased by 16383 (Intel SDM
// volume 1, 4.2.2).
func extendedText(data []byte) string {
	significand := binary.LittleEndian.Uint64(data)
	high := binary.LittleEndian.Uint16(data[8:])
	sign, exponent := "", int(high&0x7fff)
	if high&0x8000 != 0 {
		sign = "-"
	}
	switch {
	case exponent == 0x7fff && significand<<1 == 0:
		return sign + "inf"
	case exponent == 0x7fff:
		return "nan"
	case significand == 0:
		return sign + "0"
	case exponent == 0:
		exponent = 1 // denormal
	}
	v := new(big.Float).SetPrec(64).SetUint64(significand)
	v.SetMantExp(v, exponent-16383-63)
	return sign + v.Text('g', 18)
}

// enumText names an enumeration's value; a value without a name is split into
// named bits if they make it up completely.
func enumText(data []byte, t debuginfo.Type) string {
	if len(data) > 8 {
		return "0x" + hexBytes(data)
	}
	v := int64(unsignedOf(data))
	if isSigned(t) {
		v = signedOf(data)
	}
	if name, ok := t.Enumerator(v); ok {
		return fmt.Sprintf("%s (%d)", name, v)
	}
	if flags := flagText(unsignedOf(data), t); flags != "" {
		return fmt.Sprintf("%s (%#x)", flags, unsignedOf(data))
	}
	if !isSigned(t) {
		return strconv.FormatUint(uint64(v), 10)
	}
	return strconv.FormatInt(v, 10)
}

func flagText(v uint64, t debuginfo.Type) string {
	var names []string
	for bit := uint64(1); bit != 0 && bit <= v; bit <<= 1 {
		if v&bit == 0 {
			continue
		}
		name, ok := t.Enumerator(int64(bit))
		if !ok {
			return ""
		}
		names = append(names, name)
	}
	return strings.Join(names, " | ")
}
