package secrets

// seen is what the values of a text's earlier names have covered, so that values inside of
// other values do not take quadratic time.
type seen struct {
	// containers are where the last container of each class was read.
	containers [classes]readContainer
	// word is the last value without quotes that has no key, up to one of the delimiters.
	word       Span
	delimiters string
	// elements is the last element of XML whose texts were read. unclosed counts the bytes in which the
	// ends of others were looked for and not found.
	elements Span
	unclosed int
}

// readContainer is where a container was read, up to depth open brackets.
type readContainer struct {
	Span
	depth int
}

// inContainer are the values of a container: secret = {data = "x", size = 1}, "secret":
// {"data": "x"}. Those that an earlier container of the class has are not repeated, so an
// object of JSON has no limit of its own.
func (c *seen) inContainer(text string, at int, of *container) (spans []Span) {
	earlier := &c.containers[of.class()]
	depth, start, limit := 1, at, min(len(text), at+longestValue)
	if of.json {
		limit = len(text)
	}
	if at >= earlier.Start && at < earlier.End {
		if earlier.depth == 0 {
			return nil
		}
		depth, start = earlier.depth, earlier.End
	}
	spans, end, depth := of.values(text, start, depth, limit)
	end = max(end, start)
	if of.name.strength >= ordinary {
		for _, s := range numberedCharacters(text[start:end]) {
			spans = append(spans, Span{start + s.Start, start + s.End})
		}
	}
	*earlier = readContainer{Span{at, end}, depth}
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
