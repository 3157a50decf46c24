package secrets

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

// nameWords are what names of secrets have in them, in lower case.
var nameWords = func() []string {
	list := []string{"password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "motdepasse", "mot_de_passe", "contrasena", "wachtwoord",
		"pwd", "secret", "token", "credential", "pass phrase", "secret key", "api key", "access key"}
	for _, of := range []string{"api", "access", "private", "encryption", "decryption", "signing", "account", "auth", "license", "session", "master",
		"shared", "hmac", "aes", "crypto", "cipher"} {
		list = append(list, of+"_key", of+"-key", of+"key")
	}
	list = append(list, slices.Sorted(maps.Keys(strengths))...)
	return append(list, "authorization", "bearer", "basic", "cookie", "identified by")
}()

// strength says how much a name alone tells of its value.
type strength int

const (
	// faint names are mostly of other things, as key is: the value must look like a key.
	faint strength = iota
	// weak names are of parsers as well: a token is a secret if it looks random.
	weak
	// ordinary names are also words of compilers and tests, as pass is: a string is a
	// secret, a value without quotes only where it cannot be part of a sentence.
	ordinary
	strong
)

// strengths are the words that tell less than the others. They are a name's last word:
// keyboard and monkey are other names.
var strengths = map[string]strength{"pass": ordinary, "pw": ordinary, "psk": ordinary, "key": faint, "auth": faint, "sig": faint, "signature": faint,
	"session": faint, "sid": faint, "sessid": faint, "sessionid": faint, "session_id": faint, "session-id": faint}

// name is where a text names a secret.
type name struct {
	Span
	word     string // of nameWords
	strength strength
	option   bool // dashes are before it, as in --db-password
	seen     *seen
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
	n.option = n.Start < h.at && text[n.Start] == '-'
	if s, lesser := strengths[word]; lesser {
		return n, n.lessen(text, h.at, s)
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

// lessen sets the strength of a name that ends in a word of strengths, which is at a place
// of the text; false if the name means something else.
func (n *name) lessen(text string, at int, s strength) bool {
	for n.End < len(text) && (text[n.End] >= '0' && text[n.End] <= '9' || text[n.End] == '_') && n.End < at+len(n.word)+3 {
		n.End++
	}
	if isWordAt(text, n.End) || n.End+1 < len(text) && text[n.End] == '-' && isWord(text[n.End+1]) {
		return false
	}
	before := strings.TrimLeft(text[n.Start:at], "-_")
	apart := before == "" || strings.IndexByte("_-", before[len(before)-1]) >= 0 ||
		text[at] >= 'A' && text[at] <= 'Z' && lower(before[len(before)-1]) == before[len(before)-1]
	last := strings.ToLower(strings.TrimRight(before, "_-"))
	n.strength = s
	switch {
	case before == "":
	case s == ordinary:
		if notSecretPass().MatchString(last) || !apart && !secretPass().MatchString(last) {
			return false
		}
		n.strength = strong
	case !apart && !strings.HasPrefix(n.word, "sess"), strings.HasPrefix(last, "pub"):
		return false
	}
	return true
}

var (
	// notSecretPass end names of passes of compilers, renderers and filters, and words.
	notSecretPass = lazily(`(?:by|com|sur|tres|encom|over|under|sub|multi|one|two|per|first|second|third|last|next|prev|num|max|render|shadow|depth|draw|compute|cull|geometry|light|main|low|high|band|all|fast|slow|loop|function|module|opt|llvm|gcc|mir|codegen|analysis|transform|lowering|inline|final|pre|post|extra|this|each|curr?|n)$`)
	// secretPass are what names like dbpass begin with.
	secretPass = lazily(`(?:db|sql|pg|user|usr|my|smtp|imap|mail|ftp|ssh|root|admin|redis|require|key|store|ssl|tls|http|proxy|ldap|wifi|wpa|sudo|login|auth|mqtt|rabbit|su|api|app|cert|enc)$`)
)

// nameEnd is what may follow such a word in a secret's name.
var nameEnd = lazily(`^(?i:[_-]?(?:key|base|value|data|text|string|str|hash|id)\b|[_-](?:key|base|value|data|text|string|str|hash)(?:[_-](?:key|base|value|data))*|key|id)?[0-9]*_?`)

// strongToken are names before "token" that parsers have not; one in capitals is of an
// environment, one that begins with X- of a header.
var strongToken = lazily(`(?i:auth|access|session|csrf|xsrf|refresh|bearer|api|user|client|id|bot|deploy|personal|security|secret|reset|login|jwt|oauth2?)[_-]?$|^[A-Z0-9]+_$|^[Xx]-`)

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
var inHeaders = map[string]bool{"authorization": true, "bearer": true, "basic": true, "cookie": true, "identified by": true}

// namedValues finds what names of secrets are followed by.
func namedValues(text string, hits []hit) (spans []Span) {
	done, earlier := 0, new(seen)
	var inside []Span // of the last container, whose keys may be names as well
	for _, h := range hits {
		for len(inside) > 0 && inside[0].End <= h.at {
			inside = inside[1:]
		}
		if h.word >= len(nameWords) || h.at < done || len(inside) > 0 && h.at >= inside[0].Start {
			continue
		}
		var found []Span
		switch nameWords[h.word] {
		case "authorization":
			found = authorization(text, h.at+len("authorization"))
		case "bearer":
			found = word(text, h.at+len("bearer"))
		case "basic":
			found = basic(text, h.at+len("basic"))
		case "cookie":
			found = header(text, h.at+len("cookie"))
		case "identified by":
			found = quotedNext(text, h.at+len("identified by"))
		default:
			if n, ok := nameAround(text, h); ok {
				n.seen = earlier
				found = valueOf(text, n)
			}
		}
		spans = append(spans, found...)
		switch {
		case len(found) == 0:
		case len(found) > 1 || strings.ContainsAny(text[h.at:found[0].Start], "{[("):
			inside = merged(slices.Clone(found))
		default:
			done = found[0].End
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
	name := strings.ToLower(text[at-m[1] : at])
	if strings.Contains(name, "digest") || strings.Contains(name, "aws4-") {
		return restOfLine(text, at)
	}
	if m := parameters().FindStringSubmatchIndex(text[at:min(len(text), at+128)]); m != nil {
		return restOfLine(text, at+m[3])
	}
	s := Span{at, endOfWord(text, at, "\"'`,;<")}
	if s.Start == s.End || tellsNothing(text[s.Start:s.End]) || isSentence(text, s, ':') {
		return nil
	}
	return []Span{s}
}

var afterAuthorization = lazily("(?i)^[\"'`\\]]{0,3}[ \t]*[=:][ \t]*[\"'`]?(?:(?:basic|bearer|digest|token|negotiate|apikey|aws4-hmac-sha256)[ \t]+)?")

// parameters are of schemes like Digest that afterAuthorization does not know, as OAuth: group 1
// is the scheme (RFC 9110, section 11.2).
var parameters = lazily(`^([A-Za-z][\w-]{1,30}[ \t]+)[A-Za-z][\w-]{0,40}="[^",;}\s]`)

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

// basic is what follows "Basic", if it is a name and a password (RFC 7617).
func basic(text string, at int) []Span {
	for _, s := range word(text, at) {
		pair, err := base64.StdEncoding.DecodeString(text[s.Start:s.End])
		if err == nil && strings.IndexByte(string(pair), ':') >= 0 && memoryText(string(pair)) == string(pair) {
			return []Span{s}
		}
	}
	return nil
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

// restOfLine is all up to the end of the line, or of the string that it is in. Values may be in
// quotes: username="bob", response="6629".
func restOfLine(text string, at int) []Span {
	const most = 4 << 10
	end := at
	for end < len(text) && end < at+most && strings.IndexByte("\n\r\"\x00", text[end]) < 0 {
		end++
		if text[end-1] == '=' {
			end += quotedValue(text[end:min(len(text), at+most)])
		}
	}
	if end == at {
		return nil
	}
	return []Span{{at, end}}
}

// quotedValue is the length of a value in quotes that a text begins with; 0 if the quote ends the
// string that the line is in.
func quotedValue(text string) int {
	if len(text) < 2 || text[0] != '"' || strings.IndexByte(",;}) \"\n\r", text[1]) >= 0 {
		return 0
	}
	end := strings.IndexAny(text[1:], "\"\n\r\x00") + 1
	switch {
	case end == 0:
		return len(text) // it was cut
	case text[end] != '"' || isCut(text, end):
		return end
	case end+1 == len(text) || strings.IndexByte(",;\" \n\r\x00", text[end+1]) >= 0:
		return end + 1
	}
	return 0
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
