package secrets

import "sync"

// hit is where a word of the rules is in a text.
type hit struct{ word, at int }

// wordTable finds the words of all rules in one pass, by their first two characters.
type wordTable struct {
	words []string
	// rules are the forms that need a word, by the word's number; a word of names, and of
	// URLs, has none.
	rules [][]*form
	// bucket is the number of a list in starting, by two characters; 0: no word begins
	// with them.
	bucket   [1 << 16]uint16
	starting [][]int
}

var table = sync.OnceValue(func() *wordTable {
	t := &wordTable{starting: [][]int{nil}}
	number := map[string]int{}
	add := func(word string, rule *form) {
		n, found := number[word]
		if !found {
			n = len(t.words)
			number[word] = n
			t.words, t.rules = append(t.words, word), append(t.rules, nil)
			pair := int(word[0])<<8 | int(word[1])
			if t.bucket[pair] == 0 {
				t.bucket[pair] = uint16(len(t.starting))
				t.starting = append(t.starting, nil)
			}
			t.starting[t.bucket[pair]] = append(t.starting[t.bucket[pair]], n)
		}
		if rule != nil {
			t.rules[n] = append(t.rules[n], rule)
		}
	}
	for _, word := range nameWords {
		add(word, nil) // first: a word's number is its place in nameWords
	}
	add("://", nil)
	for _, list := range [][]form{ownForms, keyForms, commandForms, gitleaksRules} {
		for i := range list {
			for _, word := range list[i].keywords {
				add(word, &list[i])
			}
		}
	}
	return t
})

// scan finds the words of all rules in a text, in order of their places.
func scan(text string) (hits []hit) {
	t := table()
	for i := 0; i+1 < len(text); i++ {
		bucket := t.bucket[int(lower(text[i]))<<8|int(lower(text[i+1]))]
		if bucket == 0 {
			continue
		}
		for _, n := range t.starting[bucket] {
			if startsWith(text[i:], t.words[n]) {
				hits = append(hits, hit{n, i})
			}
		}
	}
	return hits
}

// startsWith compares with a word in lower case.
func startsWith(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(text[i]) != word[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
