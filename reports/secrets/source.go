package secrets

import "strings"

// sourceLiterals are the contents of the strings and comments in lines of source, each with
// a line feed after it, but for strings in a row, which a compiler joins. ends are where
// strings end, by where their contents begin.
func sourceLiterals(text string) (v view, ends map[int]int) {
	v.literal, ends = true, map[int]int{}
	var out []byte
	add := func(start, end int) {
		for i := start; i < end; i++ {
			out = v.addByte(out, text[i], i, i+1)
		}
	}
	separate := func(at int) {
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = v.addByte(out, '\n', at, at)
		}
	}
	joined := false // the last literal was a string, and only spaces follow it
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"':
			end := endOfLiteral(text, i)
			if !joined {
				separate(i)
			}
			add(i+1, end)
			ends[i+1] = end
			joined, i = true, end+1
			continue
		case c == 'R' && rawString().MatchString(text[i:min(len(text), i+24)]):
			m := rawString().FindStringSubmatch(text[i:min(len(text), i+24)])
			start := i + len(m[0])
			end, after := len(text), len(text)
			if n := strings.Index(text[start:], ")"+m[1]+`"`); n >= 0 {
				end, after = start+n, start+n+len(m[1])+2
			}
			separate(i)
			add(start, end)
			ends[start] = end
			joined, i = false, after
			continue
		case c == '\'':
			if m := character().FindString(text[i:min(len(text), i+12)]); m != "" {
				joined, i = false, i+len(m)
				continue
			}
		case strings.HasPrefix(text[i:], "//"), strings.HasPrefix(text[i:], "/*"), c == '*' && firstOfLine(text, i):
			end, after := endOfComment(text, i)
			separate(i)
			add(i, end)
			separate(end)
			joined, i = false, after
			continue
		}
		if c > ' ' && !(joined && prefix().MatchString(text[i:min(len(text), i+3)])) {
			joined = false
		}
		i++
	}
	v.text = string(out)
	return v, ends
}

var (
	rawString = lazily(`^R"([^()\\\s"]{0,16})\(`)
	character = lazily(`^'(?:[^'\\\n]|\\[^\n][0-9a-fA-F]{0,8})'`)
	prefix    = lazily(`^(?:L|u8|u|U)"`)
)

// endOfLiteral is where the string that begins at a quote ends: at its quote, or with the
// line.
func endOfLiteral(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"', '\n':
			return i
		}
	}
	return len(text)
}

// endOfComment is where the text of a comment ends, and what follows it.
func endOfComment(text string, at int) (end, after int) {
	mark := "\n"
	if strings.HasPrefix(text[at:], "/*") {
		mark = "*/"
	}
	if n := strings.Index(text[at:], mark); n >= 0 {
		return at + n, at + n + len(mark)
	}
	return len(text), len(text)
}

func firstOfLine(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.TrimSpace(line) == "" && at+1 < len(text) && (text[at+1] == ' ' || text[at+1] == '/')
}

// given comes between a secret's name and a string in source: password = "x",
// char password[] = "x", {"password", "x"}, set_password("x"), password = String::from("x"),
// strcpy(c.password, "x"), #define PASSWORD "x", &str = "x" of Rust.
var given = lazily("^(?:\\[[^\\]\n]{0,32}\\]|\"\\]?|\\(\\))?[ \t]*" +
	`(?:(?::[ \t]*[&\w:<> ']{1,40})?(?:[!=]=|:=|=|:|,|\(|\{)?)[ \t\n]*` +
	`(?:[A-Za-z_][\w:<>]{0,60}[({][ \t]*)?(?:L|u8|u|U|b|r)?(?:R"[^()\\\s"]{0,16}\(|")`)

// givenList comes between a secret's name and the first string of a list: char *passwords[] =
// {"x", "y"}, let passwords = ["x", "y"].
var givenList = lazily(`^(?:\[[^\]\n]{0,32}\]){0,2}[ \t]*(?::[^=\n]{1,60})?=[ \t\n]*&?(?:vec!)?[{\[][ \t\n]*(?:[A-Za-z_][\w:<>]{0,60}[({][ \t]*)?(?:L|u8|u|U|b|r)?"`)

// literalsOfList are the strings from the first one of a list up to the bracket that closes it.
func literalsOfList(text string, first int, n *name, ends map[int]int) (spans []Span) {
	depth := 1
	for i := first - 1; i < len(text) && i < first+longestValue && depth > 0; i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '\'':
			i += max(1, len(character().FindString(text[i:min(len(text), i+12)]))) - 1 // it may be a brace
		case '"':
			end, begins := ends[i+1]
			if !begins {
				return spans
			}
			if content := text[i+1 : end]; n.hidesLiteral(content) {
				spans = append(spans, nonEmpty(Span{i + 1, end})...)
			}
			i = end
		}
	}
	return spans
}

// hidesLiteral says that a string of a list that the name is given is a secret.
func (n *name) hidesLiteral(content string) bool {
	return !tellsNothing(content) && (n.strength != weak || looksRandom(content)) && (n.strength != faint || looksLikeKey(content))
}

// asked is a call whose string says which secret is asked for.
var asked = lazily(`(?i)\b(?:get|find|read|lookup|look_up|load|open|ask|prompt|query)\w*\([^()]*$`)

// givenLiterals finds the strings that source gives to names of secrets.
func givenLiterals(text string, hits []hit) (spans []Span) {
	_, ends := sourceLiterals(text)
	for _, h := range hits {
		if h.word >= len(nameWords) || inHeaders[nameWords[h.word]] && nameWords[h.word] != "authorization" {
			continue
		}
		n, ok := nameAround(text, h)
		if !ok {
			continue
		}
		window := text[n.End:min(len(text), n.End+200)]
		if m := givenList().FindString(window); m != "" {
			spans = append(spans, literalsOfList(text, n.End+len(m), &n, ends)...)
			continue
		}
		m := given().FindString(window)
		if m == "" || asked().MatchString(m) {
			continue
		}
		end, begins := ends[n.End+len(m)]
		if !begins {
			continue // it ends there
		}
		s := Span{n.End + len(m), end}
		content := text[s.Start:s.End]
		between := strings.Trim(m, " \t\n\"")
		switch assigns := strings.ContainsAny(between, "=:") || strings.HasPrefix(between, "{"); {
		case tellsNothing(content), strings.ContainsRune(content, '%') && !assigns:
			continue
		case !assigns && strings.Contains(content, " ") && !looksRandom(content) && !scheme().MatchString(content):
			continue // a sentence
		case n.strength == weak && !looksRandom(content), n.strength == faint && !looksLikeKey(content):
			continue
		}
		for begins {
			spans = append(spans, nonEmpty(s)...)
			s.Start = nextString(text, s.End)
			s.End, begins = ends[s.Start]
		}
	}
	return spans
}

// nextString is where the content of the string that follows another directly begins, -1
// if there is none.
func nextString(text string, end int) int {
	i := end + 1
	for i < len(text) && (text[i] <= ' ') {
		i++
	}
	if i < len(text) && text[i] == '"' {
		return i + 1
	}
	return -1
}
