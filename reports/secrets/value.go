package secrets

import (
	"slices"
	"strings"
)

// longestValue bounds a value that a name is given.
const longestValue = 16 << 10

// separators come between a name and its value. The first is of files and programs
// (password = x, "password": "x", ["password"] = "x", password => x); the
// second of lists of pairs ("password", "x"), where the name is quoted, and of quoted options
// ('--password' 'x'); then those of options (--password x, each on its line in memory), and what std::pair and Kubernetes have.
var (
	assigned = lazily("^(?:\\[\\d*\\])?[\"'`]?\\]?[ \t]*(=>|:=|[=:])")
	paired   = lazily("^[\"'][ \t]*(,[ \t\n]*(?:\"?(?:second|value)\"?[ \t]*[=:][ \t]*|\\[\\d+\\][ \t]*=[ \t]*)?|value[ \t]*=[ \t]*)?[ \t\n]*")
	element  = lazily(`^["'][^<>"']{0,64}>([^<>\n]+)</`)
	stated   = lazily(`^ (?:is|was):? ["']?([^\s"']+)["']?`)
	spaced   = lazily(`^(?:[ \t]+|\n)`)
	// prelude is what a debugger, or a program, writes before a string: an address, a
	// type, a constructor, a prefix.
	prelude = lazily("^(?:\\([^()\"'\n]{0,60}\\)[ \t]*)?(?:0x[0-9a-f]+[ \t]*(?:<[^<>\"\n]{0,200}>[ \t]*)?(?:->[ \t]*)?)?(?:(?:[A-Za-z_][\\w:]{0,60})?[({\\[][ \t]*)?(?:L|u8|u|U|b|r|R)?([\"'])")
)

// valueOf is the value that a name is given.
func valueOf(text string, n name) []Span {
	rest := text[n.End:min(len(text), n.End+512)]
	inQuotes := n.Start > 0 && strings.IndexByte("\"'`", text[n.Start-1]) >= 0
	if m := element().FindStringSubmatchIndex(rest); m != nil && inQuotes && n.strength >= ordinary {
		return []Span{{n.End + m[2], n.End + m[3]}}
	}
	if found, is := elementValues(text, n); is {
		return found
	}
	if found := elsewhere(text, n, rest); found != nil {
		return found
	}
	if m := assigned().FindStringSubmatchIndex(rest); m != nil {
		at, by := n.End+m[1], rest[m[2]]
		switch {
		case at < len(text) && (text[at] == '=' || text[at] == ':') && rest[m[2]:m[3]] != ":=":
			return nil // == and :: are of programs
		}
		return assignedValue(text, n, at, by, inQuotes && rest[0] != '=' && rest[0] != ':')
	}
	if m := paired().FindStringSubmatchIndex(rest); m != nil && inQuotes && (m[2] < m[3] || n.option) {
		return pairedValue(text, n, n.End+m[1])
	}
	if m := stated().FindStringSubmatchIndex(rest); m != nil && n.strength == strong {
		return statedValue(text, Span{n.End + m[2], n.End + m[3]})
	}
	if m := spaced().FindStringIndex(rest); m != nil {
		return spacedValue(text, n, n.End+m[1])
	}
	return nil
}

func assignedValue(text string, n name, at int, by byte, inQuotes bool) []Span {
	start := at
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || inQuotes && (text[at] == '\n' || text[at] == '\r')) {
		at++
	}
	window := text[at:min(len(text), at+512)]
	if m := inODBC().FindStringSubmatchIndex(window); m != nil && by == '=' && n.strength == strong && !identifier().MatchString(window[m[2]:m[3]]) {
		return []Span{{at + m[2], at + m[3]}}
	}
	if c, begin, ok := containerAt(text, n, at, by, inQuotes); ok {
		return n.seen.inContainer(text, begin, &c)
	}
	if m := prelude().FindStringSubmatchIndex(window); m != nil {
		s := Span{at + m[3], endOfQuoted(text, at+m[2])}
		content := text[s.Start:s.End]
		if tellsNothing(content) || n.strength == weak && !inQuotes && !looksRandom(content) || n.strength == faint && !looksLikeKey(content) || n.word == "pwd" && isPath(content) {
			return nil
		}
		return nonEmpty(s)
	}
	delimiters := "\"'`&;,}<"
	if n.strength == faint && n.seen.hasNoKey(text, at, delimiters) {
		return nil
	}
	s := Span{at, endOfWord(text, at, delimiters)}
	s.End = withoutClosing(text, s)
	value := text[s.Start:s.End]
	switch {
	case value == "" || tellsNothing(value) || isCode(value), isPath(value) && (n.word == "pwd" || strings.Contains(n.word, "key") || by == ':'):
		return nil
	case n.strength == weak && at > start && !looksRandom(value):
		return nil // token = next; but token=next is of a query
	case n.strength == faint && !looksLikeKey(value), n.strength == ordinary && !isGiven(text, n, s, by):
		return nil
	case isSentence(text, s, by):
		return nil
	case text[n.End] == '[' && identifier().MatchString(value), value[0] == '[' && by == ':' && isPlainWord(strings.Trim(value, "[]")):
		return nil // password[3] = next, and what programs call a message: passwd: [error]
	}
	return nonEmpty(s)
}

// inODBC is a value in braces as connection strings have it: PWD={a;b}.
var inODBC = lazily(`^\{([^{}"'\s=]+)\}`)

// isGiven says that an ordinary name has a value without quotes: in a query (?pass=x), in an
// environment (pass=x), or as all else of a line (pass: x).
func isGiven(text string, n name, value Span, by byte) bool {
	before := byte('\n')
	if n.Start > 0 {
		before = text[n.Start-1]
	}
	word := text[value.Start:value.End]
	switch {
	case before == '?' || before == '&':
		return true
	case strings.Trim(word, "0123456789") == "", sentenceWords[strings.ToLower(strings.TrimRight(word, ".,!?:;)"))]:
		return false
	case by == '=' && text[value.Start-1] == '=':
		return !isWord(before)
	}
	if by == ':' && text[value.Start-1] == ':' && (before == '{' || before == ' ') && goPair().MatchString(text[value.End:min(len(text), value.End+80)]) {
		return true // of Go's %+v
	}
	ends := value.End == len(text) || text[value.End] == '\n' || text[value.End] == '\r'
	return ends && beginsLine(text, n.Start) && (by == '=' || text[n.Start] >= 'a')
}

// beginsLine says that only blanks and dashes of its line are before a place.
func beginsLine(text string, at int) bool {
	for at > 0 && strings.IndexByte(" \t-", text[at-1]) >= 0 {
		at--
	}
	return at == 0 || text[at-1] == '\n'
}

var goPair = lazily(`^(?: [A-Z]\w*:|\})`)

// pairedValue is the string after a name in a list.
func pairedValue(text string, n name, at int) []Span {
	m := prelude().FindStringSubmatchIndex(text[at:min(len(text), at+512)])
	if m == nil {
		return nil
	}
	s := Span{at + m[3], endOfQuoted(text, at+m[2])}
	content := text[s.Start:s.End]
	if tellsNothing(content) || !n.option && strings.Contains(content, " ") && !looksRandom(content) || n.strength == weak && !n.option && !looksRandom(content) || n.strength == faint && !looksLikeKey(content) {
		return nil // "password", "the user's password"
	}
	return nonEmpty(s)
}

// spacedValue is what follows a name after spaces: an option's value, or a string after
// words like PASSWORD of SQL.
func spacedValue(text string, n name, at int) []Span {
	if at < len(text) && strings.IndexByte("\"'", text[at]) >= 0 && (n.option || n.strength == strong && strings.HasPrefix(n.word, "pass")) {
		s := Span{at + 1, endOfQuoted(text, at)}
		if tellsNothing(text[s.Start:s.End]) || strings.HasPrefix(text[s.Start:s.End], ",") || n.strength == faint && !looksLikeKey(text[s.Start:s.End]) {
			return nil
		}
		return nonEmpty(s)
	}
	if !n.option || n.Start > 0 && !strings.ContainsRune(" \t\n\"'`=([{", rune(text[n.Start-1])) {
		return nil
	}
	s := Span{at, endOfWord(text, at, "\"'`")}
	value := text[s.Start:s.End]
	if value == "" || value[0] == '-' || n.strength == faint && !looksLikeKey(value) || value[0] == '=' || tellsNothing(value) || sentenceWords[strings.ToLower(strings.Trim(value, ".,:;!?"))] {
		return nil
	}
	return nonEmpty(s)
}

// statedValue is what a message says that a password is, if that is no word of a sentence.
func statedValue(text string, s Span) []Span {
	value := text[s.Start:s.End]
	quoted := strings.IndexByte("\"'", text[s.Start-1]) >= 0
	if tellsNothing(value) || !quoted && (!strings.ContainsAny(value, "0123456789") || strings.Trim(value, "0123456789.,:;") == "") {
		return nil
	}
	return []Span{s}
}

// endOfQuoted is where the content of the string that a quote begins ends.
func endOfQuoted(text string, at int) int {
	quote := text[at]
	most := min(len(text), at+1+longestValue)
	for i := at + 1; i < most; i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return most
}

// endOfWord is where a value without quotes ends.
func endOfWord(text string, at int, delimiters string) int {
	most := min(len(text), at+longestValue)
	for i := at; i < most; i++ {
		switch c := text[i]; {
		case c <= ' ', strings.IndexByte(delimiters, c) >= 0:
			return i
		case c == '\\' && i+1 < most && strings.IndexByte("\"'\\nrt0", text[i+1]) >= 0:
			return i // an escape, which the next view is without
		}
	}
	return most
}

// withoutClosing is the end of a value without the brackets that were opened before it.
func withoutClosing(text string, s Span) int {
	value := text[s.Start:s.End]
	closing := ""
	for _, pair := range []string{"()", "[]"} {
		if strings.IndexByte(value, pair[0]) < 0 {
			closing += pair[1:]
		}
	}
	return s.Start + len(strings.TrimRight(value, closing))
}

// noSecret is a value that tells nothing: an address, which is evidence, a word for no
// value, a small number, or what stands for a value that is not there.
var noSecret = lazily(`(?i)^(?:\(?(?:0x[0-9a-f]{1,16}|nullptr|null|nil|none|undefined|true|false|yes|no)\)?[.)\]]*|` +
	`-?\d{1,3}|<[^<>]*>?|%[-+ #0-9.*]*[a-z]{1,4}|\$\w+|\$?\{+[^{}]*\}*|\.{3}|\*+|\[redacted\].*)$`)

func tellsNothing(value string) bool {
	return noSecret().MatchString(value) || strings.TrimSpace(value) == ""
}

// isCode says that a value is an expression of a program: a call, a member.
func isCode(value string) bool { return code().MatchString(value) }

var code = lazily(`^[*&!]?[A-Za-z_]\w*(?:(?:::|->|\.)[A-Za-z_]\w*)*(?:\(|(?:\[\w*\]|->\w+)$)|^[*&][A-Za-z_]\w*$`)

func isPath(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../")
}

// isPlainWord says that a text is a word of a sentence: letters, the first of any case.
func isPlainWord(text string) bool { return plainWord().MatchString(text) }

var plainWord = lazily(`^[A-Za-z]?[a-z]+(?:['’-][a-z]+)*[.,!?:;)]*$`)

// isSentence says that a value without quotes is a word of a sentence, as after the name of
// a program in "passwd: cannot open file". by is '=' or ':'.
func isSentence(text string, value Span, by byte) bool {
	word := text[value.Start:value.End]
	if !isPlainWord(word) {
		return false
	}
	if sentenceWords[strings.ToLower(strings.TrimRight(word, ".,!?:;)"))] && by == ':' {
		return true
	}
	rest := strings.TrimLeft(text[value.End:min(len(text), value.End+128)], " \t")
	if len(rest) == len(text[value.End:min(len(text), value.End+128)]) || rest == "" {
		return false // it is the last word, or a delimiter ends it
	}
	spaced := text[value.Start-1] == ' '
	if by == '=' && !spaced {
		return false // password=hunter and more
	}
	return !nextPair().MatchString(rest) && isWord(rest[0])
}

// nextPair begins another name and its value.
var nextPair = lazily(`^["']?[\w.-]{1,64}["']?[ \t]*[=:]`)

// looksRandom says that a value is no word and no operator of a language.
func looksRandom(value string) bool {
	const shortest = 6
	if len(value) < shortest || strings.ContainsAny(value, " \t\n") {
		return false
	}
	letters, digits, upper := 0, 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
			letters++
		case c|' ' >= 'a' && c|' ' <= 'z':
			letters++
		}
	}
	if letters == 0 {
		return digits > shortest
	}
	if isCode(value) || identifier().MatchString(value) {
		return false
	}
	return digits > 0 || upper > 1 && upper < letters || letters+digits > 20
}

// looksLikeKey says that a value has so many letters and digits in a row as no word has, of
// more than one kind. An UUID names something.
func looksLikeKey(value string) bool {
	const shortest = 12
	if strings.ContainsAny(value, " \t\n") || uuid().MatchString(value) {
		return false
	}
	for _, run := range strings.FieldsFunc(value, func(c rune) bool { return c > '~' || !isWord(byte(c)) || c == '_' }) {
		if len(run) >= shortest && !identifier().MatchString(run) && (mixed(run) || strings.ContainsAny(run, "0123456789") && strings.Trim(run, "0123456789") != "" && bits(run) >= 3*shortest) {
			return true
		}
	}
	return false
}

var uuid = lazily(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// identifier is a name as programs have it: all in one case with underscores, with a
// capital at the begin of its words, or with a number at its end.
var identifier = lazily(`^(?:[a-z]+(?:_[a-z0-9]+)*[0-9]{0,2}|[A-Z]+(?:_[A-Z0-9]+)*[0-9]{0,2}|_*[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+)+)$`)

// sentenceWords follow the name of a secret in sentences.
var sentenceWords = func() map[string]bool {
	set := map[string]bool{}
	for _, w := range slices.Concat(
		strings.Fields("a an the and or not no is are was were be been to of for from in on at with without by as if then than too must may can cannot can't could should will has have had does do did"),
		strings.Fields("failed failure error invalid missing required requires expired incorrect wrong denied ok okay unknown empty none null yes true false expected unexpected accepted rejected needs takes expects"),
		strings.Fields("given set unset found mismatch mismatched changed unchanged updated option flag argument value file user string number optional enabled disabled hidden redacted bad good valid verified unauthorized forbidden include same-origin omit"),
	) {
		set[w] = true
	}
	return set
}()
