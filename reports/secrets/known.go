package secrets

import (
	"index/suffixarray"
	"math"
	"strings"
)

// known are the values that a document shows as secrets somewhere.
type known struct {
	values []knownValue
	has    map[string]bool
	// bytes are those of all values, longest those of the longest that is no word.
	bytes, longest int
	// heads and tails are the values that begin and end with these characters; words
	// are only in heads. begins and ends are the sets of the first two of them.
	heads, tails map[part][]int
	begins, ends pairs
	// inside finds the parts of a value that is no word; nil until it is asked.
	inside *suffixarray.Index
}

// part is so much of a known value as is one at the cut end of a string.
type part [leastPart]byte

// pairs is a set of two bytes, with which most places of a text are passed over.
type pairs [1 << 10]uint64

func (p *pairs) addPairsOf(text string) {
	n := int(text[0])<<8 | int(text[1])
	p[n>>6] |= 1 << (n & 63)
}

func (p *pairs) has(text string) bool {
	n := int(text[0])<<8 | int(text[1])
	return p[n>>6]&(1<<(n&63)) != 0
}

// knownValue is a value; of a word only the whole is found, and no part.
type knownValue struct {
	text string
	word bool
}

const (
	// mostKnown bounds the values, longestKnown each, mostKnownBytes all of them.
	mostKnown      = 256
	longestKnown   = longestValue
	mostKnownBytes = 64 << 10
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
		if strings.HasPrefix(line, "-----") || !distinct(line) || k.has[line] || len(k.values) >= mostKnown || k.bytes+len(line) > mostKnownBytes {
			continue
		}
		k.addValue(knownValue{line, isWordLike(line)})
	}
}

func (k *known) addValue(v knownValue) {
	if k.has == nil {
		k.has, k.heads, k.tails = map[string]bool{}, map[part][]int{}, map[part][]int{}
	}
	n := len(k.values)
	k.values, k.has[v.text] = append(k.values, v), true
	k.bytes += len(v.text)
	head := part([]byte(v.text[:leastPart]))
	k.heads[head] = append(k.heads[head], n)
	k.begins.addPairsOf(v.text)
	if v.word {
		return
	}
	end := v.text[len(v.text)-leastPart:]
	tail := part([]byte(end))
	k.tails[tail] = append(k.tails[tail], n)
	k.ends.addPairsOf(end)
	k.longest, k.inside = max(k.longest, len(v.text)), nil
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
		if _, lesser := strengths[table().words[h.word]]; h.word < len(nameWords) && !lesser {
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

// knownIn finds the known values in a view, and parts of them where a string was cut.
func (f *Finder) knownIn(v *view, of kind) (spans []Span) {
	if len(f.known.values) == 0 {
		return nil
	}
	spans = f.wholeIn(v.text)
	if of == source || f.known.longest == 0 {
		return spans
	}
	ends := []Span{{0, len(v.text)}}
	if of != memory {
		ends = quotedIn(v.text)
	}
	for _, s := range ends {
		spans = append(spans, f.partsIn(v.text, s)...)
	}
	return spans
}

// compares charges the comparison of a value, and says whether there is work left. Where
// there is none, what begins or ends like a value is taken for it.
func (f *Finder) compares(value string) bool {
	const perStep = 16
	if f.spent > mostWork {
		return false
	}
	f.spent += 1 + len(value)/perStep
	return f.spent <= mostWork
}

// wholeIn finds the known values, words only where they are whole.
func (f *Finder) wholeIn(text string) (spans []Span) {
	k := &f.known
	for i := 0; i+leastPart <= len(text); i++ {
		if !k.begins.has(text[i:]) {
			continue
		}
		for _, n := range k.heads[part([]byte(text[i:i+leastPart]))] {
			value, word := k.values[n].text, k.values[n].word
			end := min(len(text), i+len(value))
			if !f.compares(value) {
				spans = append(spans, Span{i, end})
				break
			}
			if text[i:end] == value && (!word || !isWordAt(text, i-1) && !isWordAt(text, end)) {
				spans = append(spans, Span{i, end})
			}
		}
	}
	return spans
}

// partsIn finds a known value's end where a string begins (a pointer that moved along it),
// its begin where a string ends, and a string that is inside it. Parts of words may be of
// other words.
func (f *Finder) partsIn(text string, s Span) (spans []Span) {
	k := &f.known
	content := text[s.Start:s.End]
	if len(content) < leastPart {
		return nil
	}
	if len(content) < k.longest && k.holds(content) {
		return []Span{s}
	}
	for i := 0; i+leastPart <= min(len(content), k.longest); i++ {
		if !k.ends.has(content[i:]) {
			continue
		}
		begin := content[:i+leastPart]
		for _, n := range k.tails[part([]byte(begin[i:]))] {
			if !f.compares(begin) || strings.HasSuffix(k.values[n].text, begin) {
				spans = append(spans, Span{s.Start, s.Start + len(begin)})
				break
			}
		}
	}
	for i := max(0, len(content)-k.longest); i+leastPart <= len(content); i++ {
		if !k.begins.has(content[i:]) {
			continue
		}
		end := content[i:]
		for _, n := range k.heads[part([]byte(end[:leastPart]))] {
			if k.values[n].word {
				continue
			}
			if !f.compares(end) || strings.HasPrefix(k.values[n].text, end) {
				return append(spans, Span{s.Start + i, s.End})
			}
		}
	}
	return spans
}

// holds says that a text is in a value that is no word.
func (k *known) holds(content string) bool {
	if strings.IndexByte(content, '\n') >= 0 {
		return false // it separates the values
	}
	if k.inside == nil {
		var all []byte
		for i := range k.values {
			if !k.values[i].word {
				all = append(append(all, k.values[i].text...), '\n')
			}
		}
		k.inside = suffixarray.New(all)
	}
	return len(k.inside.Lookup([]byte(content), 1)) > 0
}

func isWordAt(text string, i int) bool { return i >= 0 && i < len(text) && isWord(text[i]) }
