package secrets

import "strings"

// keyForms are keys without armour as they begin: OpenSSH's, and those of DER (RFC 8017,
// appendix A.1.2; RFC 5958; RFC 5915), whose first bytes are their type and version.
var keyForms = []form{
	{name: "openssh-key", keywords: []string{"b3blbnnzac1rzxkt"}, reach: 1 << 15, expr: `(b3BlbnNzaC1rZXkt[A-Za-z0-9+/=]*)`},
	{name: "der-key", keywords: []string{"mii", "mihcagea", "mhccaqee", "mgccaqe", "mc4caqaw", "mieeagea"}, reach: 1 << 15,
		expr: `(?:^|[^A-Za-z0-9+/])((?:MII[A-Z][A-Za-z0-9+/]{2}IBA[AD][A-Za-z0-9+/]|MIHcAgEA|MHcCAQEE|MIGHAgEA|MGcCAQE|MC4CAQAw)[A-Za-z0-9+/=]+)`},
}

// lineLengths are those of keys' lines: of PEM (RFC 7468), OpenSSH, and MIME (RFC 2045).
var lineLengths = map[int]bool{64: true, 70: true, 76: true}

// keyLines finds lines of keys whose begin was cut off: as many characters of base64 as a
// line has, in a word of their own, and the lines up to the key's end. A digest in
// hexadecimal has no letters of both cases, and a path has more small letters.
func keyLines(text string) (spans []Span) {
	const longest = 76
	inKey := false
	for start := 0; start < len(text); {
		if !isBase64(text[start]) {
			inKey = inKey && (text[start] == '\n' || text[start] == '\r')
			start++
			continue
		}
		end := start
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		run := text[start:end]
		apart := (start == 0 || strings.IndexByte(" \t\r\n\"'`", text[start-1]) >= 0) && (end == len(text) || strings.IndexByte(" \t\r\n\"'`\\,;)", text[end]) >= 0)
		alone := end == len(text) || text[end] == '\n' || text[end] == '\r'
		switch {
		case apart && lineLengths[len(run)] && mixed(run) && !mostlySmall(run), inKey && alone && len(run) <= longest:
			spans, inKey = append(spans, Span{start, end}), alone
		default:
			inKey = false
		}
		start = end
	}
	return spans
}

// mostlySmall says that a text has more small letters than base64 of a key has by chance:
// 26 of 64, and that by more than four standard deviations.
func mostlySmall(text string) bool {
	small := 0
	for i := range len(text) {
		if text[i] >= 'a' && text[i] <= 'z' {
			small++
		}
	}
	return small*100 > len(text)*66
}

func isBase64(c byte) bool {
	return c >= '0' && c <= '9' || c|' ' >= 'a' && c|' ' <= 'z' || c == '+' || c == '/' || c == '='
}

// mixed says that a text has letters of both cases and digits.
func mixed(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c >= 'a' && c <= 'z' }) &&
		strings.ContainsFunc(text, func(c rune) bool { return c >= 'A' && c <= 'Z' }) &&
		strings.ContainsFunc(text, func(c rune) bool { return c >= '0' && c <= '9' })
}
