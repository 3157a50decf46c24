package secrets

import (
	"math"
	"strings"
)

// known are the values that a document shows as secrets somewhere.
type known struct {
	values []knownValue
	has    map[string]bool
}

// knownValue is a value; of a word only the whole is found, and no part.
type knownValue struct {
	text string
	word bool
}

const (
	// mostKnown bounds the values, longestKnown each, mostKnownBytes all of them.
	mostKnown    = 256
	longestKnown = longestValue
	// leastKnown, leastBits and leastWord keep a value like "yes" from being replaced in
	// all of a report: so many characters, so many bits by their frequency, so many
	// characters for what may be a word.
	leastKnown = 6
	leastBits  = 12
	leastWord  = 8
	// leastPart is how much of a known value is one at the cut end of a string.
	leastPart = 5
)

// learn takes a secret to be found elsewhere, if it is distinct enough.
func (k *known) learn(value string) {
	for line := range strings.SplitSeq(value, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") || !distinct(line) || k.has[line] || len(k.values) >= mostKnown {
			continue
		}
		if k.has == nil {
			k.has = map[string]bool{}
		}
		k.has[line] = true
		k.values = append(k.values, knownValue{line, isWordLike(line)})
	}
}

func distinct(value string) bool {
	if len(value) < leastKnown || len(value) > longestKnown || bits(value) < leastBits || tellsNothing(value) || isPath(value) {
		return false
	}
	if isWordLike(value) {
		return len(value) >= leastWord && !namesSecret(value)
	}
	return !identifier().MatchString(value) || !namesSecret(value)
}

// isWordLike says that a value may be a word of a language, in capitals or not.
func isWordLike(value string) bool {
	return isPlainWord(value) || strings.ToUpper(value) == value && isPlainWord(strings.ToLower(value))
}

// namesSecret says that a value is itself the name of a secret, as "password" is.
func namesSecret(value string) bool {
	for _, h := range scan(value) {
		if h.word < len(nameWords) {
			return true
		}
	}
	return false
}

// bits is the length of a value in the best code for its own characters.
func bits(value string) float64 {
	var count [256]int
	for i := range len(value) {
		count[value[i]]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			sum -= float64(n) * math.Log2(float64(n)/float64(len(value)))
		}
	}
	return sum
}

// in finds the known values in a view, and parts of them where a string was cut.
func (k *known) in(v *view, of kind) (spans []Span) {
	for i := range k.values {
		value, whole := k.values[i].text, k.values[i].word
		for at := 0; ; {
			i := strings.Index(v.text[at:], value)
			if i < 0 {
				break
			}
			s := Span{at + i, at + i + len(value)}
			at = s.End
			if !whole || !isWordAt(v.text, s.Start-1) && !isWordAt(v.text, s.End) {
				spans = append(spans, s)
			}
		}
	}
	if len(k.values) == 0 || of == source {
		return spans
	}
	ends := []Span{{0, len(v.text)}}
	if of != memory {
		ends = quotedIn(v.text)
	}
	for _, s := range ends {
		spans = append(spans, k.parts(v.text, s)...)
	}
	return spans
}

// parts finds a known value's end where a string begins (a pointer that moved along it),
// its begin where a string ends, and a string that is inside it.
func (k *known) parts(text string, s Span) (spans []Span) {
	content := text[s.Start:s.End]
	if len(content) < leastPart {
		return nil
	}
	for i := range k.values {
		value := k.values[i].text
		if k.values[i].word {
			continue // its parts may be of others
		}
		if len(content) < len(value) && strings.Contains(value, content) {
			return []Span{s}
		}
		// A value's end at the begin is searched by its last characters.
		tail, head := value[len(value)-leastPart:], value[:leastPart]
		if i := strings.Index(content[:min(len(content), len(value))], tail); i >= 0 && strings.HasSuffix(value, content[:i+leastPart]) {
			spans = append(spans, Span{s.Start, s.Start + i + leastPart})
		}
		last := content[max(0, len(content)-len(value)):]
		if i := strings.LastIndex(last, head); i >= 0 && strings.HasPrefix(value, last[i:]) {
			spans = append(spans, Span{s.End - len(last) + i, s.End})
		}
	}
	return spans
}

func isWordAt(text string, i int) bool { return i >= 0 && i < len(text) && isWord(text[i]) }
