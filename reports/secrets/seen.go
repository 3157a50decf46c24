package secrets

// seen is what the values of a text's earlier names have covered, so that values inside of
// other values do not take quadratic time.
type seen struct {
	// braces is where the last value in braces was read, up to depth open braces.
	braces Span
	depth  int
	// word is the last value without quotes that has no key, up to one of the delimiters.
	word       Span
	delimiters string
}

// inBraces are the strings of a short form: secret = {data = "x", size = 1}. Those that an
// earlier value has are not repeated.
func (c *seen) inBraces(text string, at int) (spans []Span) {
	depth, start, limit := 1, at, at+longestValue
	if at >= c.braces.Start && at < c.braces.End {
		if c.depth == 0 {
			return nil
		}
		depth, start = c.depth, c.braces.End
	}
	i := start
	for ; i < len(text) && i < limit && depth > 0; i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
		case '\'':
			i += len(character().FindString(text[i:min(len(text), i+12)])) // it may be a brace
		case '"':
			s := Span{i + 1, endOfQuoted(text, i)}
			if !tellsNothing(text[s.Start:s.End]) {
				spans = append(spans, nonEmpty(s)...)
			}
			i = s.End
		}
	}
	end := min(len(text), max(i, start))
	for _, s := range numberedCharacters(text[start:end]) {
		spans = append(spans, Span{start + s.Start, start + s.End})
	}
	c.braces, c.depth = Span{at, end}, depth
	return spans
}

// hasNoKey says that a value is the rest of one that has no key. A value begins after a
// character that is of no key, so its keys are also those of the longer one.
func (c *seen) hasNoKey(text string, at int, delimiters string) bool {
	inside := at >= c.word.Start && at < c.word.End && delimiters == c.delimiters
	if inside && c.word.End-c.word.Start < longestValue {
		return true // it ends where the longer one does
	}
	from := at
	if inside {
		for from = c.word.End; from > at && isWord(text[from-1]); from-- {
		}
	}
	end := endOfWord(text[:min(len(text), at+longestValue)], from, delimiters)
	if looksLikeKey(text[from:end]) {
		return false
	}
	c.word, c.delimiters = Span{at, end}, delimiters
	return true
}
