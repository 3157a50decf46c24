package expression

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// literalOf makes a literal of a token. problem is not empty if it is none.
func literalOf(t token) (x node, problem string) {
	switch t.kind {
	case tokenChar:
		text, problem := unescape(t.text)
		r, n := utf8.DecodeRune(text)
		switch {
		case problem != "":
			return nil, problem
		case len(text) == 1:
			return &constant{intType, uint64(int64(int8(text[0])))}, "" // C11, 6.4.4.4: an int
		case n != len(text) || n == 0:
			return nil, "not one character"
		}
		return &constant{intType, uint64(r)}, ""
	case tokenString:
		text, problem := unescape(t.text)
		return &literalText{text}, problem
	}
	return numberOf(t.text)
}

// numberOf makes a number of a token (C11, 6.4.4.1 and 6.4.4.2).
func numberOf(text string) (node, string) {
	lower := strings.ToLower(text)
	hex := strings.HasPrefix(lower, "0x")
	if strings.ContainsAny(lower, ".p") || !hex && strings.Contains(lower, "e") {
		t, size := doubleType, 64
		if !hex || strings.Contains(lower, "p") {
			if digits, single := strings.CutSuffix(lower, "f"); single {
				lower, t, size = digits, floatType, 32
			}
		}
		v, err := strconv.ParseFloat(lower, size)
		if err != nil {
			return nil, "no number"
		}
		if t == floatType {
			return &constant{t, uint64(math.Float32bits(float32(v)))}, ""
		}
		return &constant{t, math.Float64bits(v)}, ""
	}
	digits := strings.TrimRight(lower, "ul")
	suffix := lower[len(digits):]
	unsigned := strings.Count(suffix, "u") == 1
	long := strings.Contains(suffix, "l")
	switch strings.Replace(suffix, "u", "", 1) {
	case "", "l", "ll":
	default:
		return nil, "no number"
	}
	if strings.Contains(digits, "_") {
		return nil, "no number"
	}
	v, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return nil, "no number of 64 bits"
	}
	decimal := digits == "0" || digits[0] != '0'
	return &constant{integerType(v, unsigned, long, decimal), v}, ""
}

// integerType is the type of an integer literal: the first that holds it (C11, 6.4.4.1).
func integerType(v uint64, unsigned, long, decimal bool) *basicType {
	switch {
	case !unsigned && !long && v <= math.MaxInt32:
		return intType
	case !long && v <= math.MaxUint32 && (unsigned || !decimal):
		return uintType
	case !unsigned && v <= math.MaxInt64:
		return longType
	}
	return ulongType
}

// escapes are those of C that stand for one character (C11, 6.4.4.4), and GNU's \e.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v', 'e': 0x1b, '\\': '\\', '\'': '\'', '"': '"', '?': '?'}

func unescape(s string) (text []byte, problem string) {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			text = append(text, s[i])
			continue
		}
		if i++; i == len(s) {
			return nil, "an escape that is not complete"
		}
		if c, known := escapes[s[i]]; known {
			text = append(text, c)
			continue
		}
		digits, base := "", 8
		switch {
		case s[i] == 'x':
			base = 16
			for i+1 < len(s) && len(digits) < 2 && strings.IndexByte("0123456789abcdefABCDEF", s[i+1]) >= 0 {
				digits += s[i+1 : i+2]
				i++
			}
		case s[i] >= '0' && s[i] <= '7':
			digits = s[i : i+1]
			for i+1 < len(s) && len(digits) < 3 && s[i+1] >= '0' && s[i+1] <= '7' {
				digits += s[i+1 : i+2]
				i++
			}
		}
		v, err := strconv.ParseUint(digits, base, 8)
		if err != nil {
			return nil, "an unknown escape"
		}
		text = append(text, byte(v))
	}
	return text, ""
}
