package secrets

import "strings"

// nameWords are what names of secrets have in them, in lower case.
var nameWords = []string{"password", "passwd", "passphrase", "passcode", "pwd", "_pass", "-pass", "secret", "token", "credential",
	"api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey",
	"encryption_key", "encryption-key", "encryptionkey", "signing_key", "signing-key", "signingkey", "account_key", "account-key", "accountkey",
	"auth_key", "auth-key", "authkey", "license_key", "licensekey",
	"authorization", "bearer", "cookie", "identified by"}

// strength says how much a name alone tells of its value.
type strength int

const (
	// weak names are of parsers as well: a token is a secret if it looks random.
	weak strength = iota
	strong
)

// name is where a text names a secret.
type name struct {
	Span
	word     string // of nameWords
	strength strength
	option   bool // dashes are before it, as in --db-password
}

// nameAround is the whole name that a word is in; false if the word is in the middle of one
// that means something else (password_length, tokens).
func nameAround(text string, h hit) (name, bool) {
	const longest = 64
	word := nameWords[h.word]
	n := name{Span: Span{h.at, h.at + len(word)}, word: word, strength: strong}
	for n.Start > 0 && h.at-n.Start < longest && (isWord(text[n.Start-1]) || text[n.Start-1] == '-') {
		n.Start--
	}
	switch {
	case strings.HasPrefix(text[n.Start:], "--"), n.Start < h.at && text[n.Start] == '-':
		n.option = true
	case word[0] == '_' || word[0] == '-':
		if n.Start == h.at {
			return n, false
		}
	}
	if word != "token" && n.End < len(text) && lower(text[n.End]) == 's' {
		n.End++ // credentials
	}
	n.End += len(nameEnd().FindString(text[n.End:min(len(text), n.End+longest)]))
	if n.End < len(text) && (isWord(text[n.End]) || text[n.End] == '-' && n.End+1 < len(text) && isWord(text[n.End+1])) {
		return n, false
	}
	if word == "token" && !strongToken().MatchString(text[n.Start:h.at]) {
		n.strength = weak
	}
	return n, true
}

// nameEnd is what may follow such a word in a secret's name.
var nameEnd = lazily(`^(?i:[_-]?(?:key|base|value|data|text|string|str|hash|id)\b|[_-](?:key|base|value|data|text|string|str|hash)(?:[_-](?:key|base|value|data))*|key|id)?[0-9]*_?`)

// strongToken are names before "token" that parsers have not; one in capitals is of an
// environment.
var strongToken = lazily(`(?i:auth|access|session|csrf|xsrf|refresh|bearer|api|user|client|id|bot|deploy|personal|security|secret|reset|login|jwt|oauth2?)[_-]?$|^[A-Z0-9]+_$`)

// nameStrength is what the name of a variable tells of its value; false if it is no name
// of a secret.
func nameStrength(text string) (strength, bool) {
	for _, h := range scan(text) {
		if h.word >= len(nameWords) || inHeaders[nameWords[h.word]] {
			continue
		}
		if n, ok := nameAround(text, h); ok && n.End == len(text) {
			return n.strength, true
		}
	}
	return weak, false
}

// inHeaders are words that no variable's value is known by.
var inHeaders = map[string]bool{"authorization": true, "bearer": true, "cookie": true, "identified by": true}

// namedValues finds what names of secrets are followed by.
func namedValues(text string, hits []hit) (spans []Span) {
	done := 0
	for _, h := range hits {
		if h.word >= len(nameWords) || h.at < done {
			continue
		}
		var found []Span
		switch nameWords[h.word] {
		case "authorization":
			found = authorization(text, h.at+len("authorization"))
		case "bearer":
			found = word(text, h.at+len("bearer"))
		case "cookie":
			found = header(text, h.at+len("cookie"))
		case "identified by":
			found = quotedNext(text, h.at+len("identified by"))
		default:
			if n, ok := nameAround(text, h); ok {
				found = valueOf(text, n)
			}
		}
		for _, s := range found {
			spans, done = append(spans, s), s.End
		}
	}
	return spans
}

// authorization is what the header of HTTP, or a field of that name, has after its scheme
// (RFC 9110, section 11.6.2).
func authorization(text string, at int) []Span {
	m := afterAuthorization().FindStringIndex(text[at:min(len(text), at+128)])
	if m == nil {
		return nil
	}
	at += m[1]
	if strings.HasPrefix(strings.ToLower(text[at-m[1]:at]), "digest") || strings.Contains(strings.ToLower(text[at-m[1]:at]), "digest ") {
		return restOfLine(text, at)
	}
	s := Span{at, endOfWord(text, at, "\"'`,;<")}
	if s.Start == s.End || tellsNothing(text[s.Start:s.End]) || isSentence(text, s, ':') {
		return nil
	}
	return []Span{s}
}

var afterAuthorization = lazily("(?i)^[\"'`\\]]{0,3}[ \t]*[=:][ \t]*[\"'`]?(?:(?:basic|bearer|digest|token|negotiate|apikey|aws4-hmac-sha256)[ \t]+)?")

// scheme begins what an authorization header has.
var scheme = lazily(`(?i)^(?:basic|bearer|digest|token|negotiate|apikey|aws4-hmac-sha256) [^ ]+$`)

// word is what follows "Bearer", if it looks like no word of a sentence.
func word(text string, at int) []Span {
	const shortest = 6
	start := at
	for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	end := start
	for end < len(text) && isToken(text[end]) {
		end++
	}
	if start == at || end-start < shortest || isPlainWord(text[start:end]) || tellsNothing(text[start:end]) {
		return nil
	}
	return []Span{{start, end}}
}

// header is all that a header like Cookie has.
func header(text string, at int) []Span {
	if at >= len(text) || text[at] != ':' {
		return nil
	}
	at++
	for at < len(text) && text[at] == ' ' {
		at++
	}
	if s := restOfLine(text, at); s != nil && strings.ContainsRune(text[s[0].Start:s[0].End], '=') {
		return s
	}
	return nil
}

func restOfLine(text string, at int) []Span {
	const most = 4 << 10
	end := at
	for end < len(text) && end < at+most && strings.IndexByte("\n\r\"\x00", text[end]) < 0 {
		end++
	}
	if end == at {
		return nil
	}
	return []Span{{at, end}}
}

// quotedNext is a string of SQL that comes next.
func quotedNext(text string, at int) []Span {
	for at < len(text) && text[at] == ' ' {
		at++
	}
	if at >= len(text) || text[at] != '\'' {
		return nil
	}
	return nonEmpty(Span{at + 1, endOfQuoted(text, at)})
}

func nonEmpty(s Span) []Span {
	if s.Start >= s.End {
		return nil
	}
	return []Span{s}
}
