package blocks

import "strings"

// token is a part of C source that is no comment, no space and no directive.
type token struct {
	text       string
	line       int // from 1
	start, end int // offsets in the source
}

// isIdentifier reports whether the token is an identifier or a keyword.
func (t *token) isIdentifier() bool { return isLetter(t.text[0]) }

// directive is a line of the preprocessor, with the lines that continue it.
type directive struct {
	text       string
	line       int
	start, end int
}

// lex splits C source into tokens and directives (C11 5.1.1.2 and 6.4). Strings and characters are one token each. What is not
// terminated ends with its line, a comment with the source.
func lex(source string) (tokens []token, directives []directive) {
	line, begins := 1, true // begins: nothing but space is before on this line
	for at := 0; at < len(source); {
		c := source[at]
		end := at + 1
		switch {
		case c == '\n':
			line, at, begins = line+1, end, true
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\\' && at+1 < len(source) && source[at+1] == '\n':
			at = end
			continue
		case strings.HasPrefix(source[at:], "//"):
			at = endOfLine(source, at)
			continue
		case strings.HasPrefix(source[at:], "/*"):
			if n := strings.Index(source[at+2:], "*/"); n >= 0 {
				end = at + 2 + n + 2
			} else {
				end = len(source)
			}
			line, at = line+strings.Count(source[at:end], "\n"), end
			continue
		case c == '#' && begins:
			end = endOfDirective(source, at)
			directives = append(directives, directive{source[at:end], line, at, end})
			line, at = line+strings.Count(source[at:end], "\n"), end
			continue
		case c == '"' || c == '\'':
			end = endOfLiteral(source, at)
		case isLetter(c) || isDigit(c):
			for end < len(source) && (isLetter(source[end]) || isDigit(source[end])) {
				end++
			}
		}
		tokens = append(tokens, token{source[at:end], line, at, end})
		line, at, begins = line+strings.Count(source[at:end], "\n"), end, false
	}
	return tokens, directives
}

func endOfLine(source string, at int) int {
	if n := strings.IndexByte(source[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(source)
}

func endOfDirective(source string, at int) int {
	for {
		at = endOfLine(source, at)
		if at == len(source) || source[at-1] != '\\' {
			return at
		}
		at++
	}
}

func endOfLiteral(source string, at int) int {
	quote := source[at]
	for at++; at < len(source); at++ {
		switch source[at] {
		case '\\':
			at++
		case '\n':
			return at
		case quote:
			return at + 1
		}
	}
	return len(source)
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Identifiers returns the identifiers and keywords of C source, each once, in the order in which they first come. Those of
// directives are not among them, those of macros' definitions are.
func Identifiers(source string) []string {
	var list []string
	seen := map[string]bool{}
	add := func(source string) {
		tokens, _ := lex(source)
		for i := range tokens {
			if name := tokens[i].text; tokens[i].isIdentifier() && !seen[name] {
				seen[name] = true
				list = append(list, name)
			}
		}
	}
	add(source)
	_, directives := lex(source)
	for _, d := range directives {
		if text := strings.TrimLeft(d.text[1:], " \t"); strings.HasPrefix(text, "define") {
			add(strings.ReplaceAll(text, "\\\n", " "))
		}
	}
	return list
}

// Tags returns the tags of structures, unions and enumerations that source names, each once with its keyword: "struct item".
func Tags(source string) []string {
	tokens, _ := lex(source)
	var list []string
	seen := map[string]bool{}
	for i := range tokens[:max(len(tokens)-1, 0)] {
		keyword, name := tokens[i].text, &tokens[i+1]
		if !isTagKeyword(keyword) || !name.isIdentifier() || seen[keyword+" "+name.text] {
			continue
		}
		seen[keyword+" "+name.text] = true
		list = append(list, keyword+" "+name.text)
	}
	return list
}

func isTagKeyword(text string) bool { return text == "struct" || text == "union" || text == "enum" }

// Declared returns the names that source without directives declares outside of all functions and structures, and its tags as those
// of Tags. Parameters are not among them; some of the names may be those of types that are only used.
func Declared(source string) map[string]bool {
	names := map[string]bool{}
	tokens, _ := lex(source)
	depth, inside := 0, 0 // braces and parentheses that are open
	for i := range tokens {
		switch tokens[i].text {
		case "(":
			inside++
		case ")":
			inside--
		}
		depth += braces(tokens[i].text)
		pointer := i > 1 && tokens[i-1].text == "*" && tokens[i-2].text == "(" // as in int (*name)(void)
		if depth == 0 && (inside == 0 || pointer) && tokens[i].isIdentifier() && (i == 0 || !isTagKeyword(tokens[i-1].text)) {
			names[tokens[i].text] = true
		}
	}
	for _, tag := range Tags(source) {
		names[tag] = true
	}
	return names
}

// Macros returns the names that lines of #define define, as the compilers' -dM writes them.
func Macros(text string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, "#define "); is {
			end := 0
			for end < len(rest) && (isLetter(rest[end]) || isDigit(rest[end])) {
				end++
			}
			names[rest[:end]] = true
		}
	}
	return names
}
