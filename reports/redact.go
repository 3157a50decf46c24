package reports

import (
	"regexp"
	"strings"
)

const redactedMark = "[redacted]"

// secretPatterns find secrets by their form; group 1 is the secret.
var secretPatterns = []*regexp.Regexp{
	// name=value and name: value; "::" and "==" are of programs, not of secrets.
	regexp.MustCompile(`(?i)(?:^|[\s"'?&;{,/_-])` + secretWord + `["']?\s*[=:]\s*["']?([^\s"'&;,}=:][^\s"'&;,}]*)`),
	regexp.MustCompile(`(?i)(?:^|\s)--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|secret|token|api-?key|access-?key|private-?key)\s+(\S+)`),
	regexp.MustCompile(`(?i)\bauthorization:\s*(?:basic|bearer|digest|token)?\s*([^\s"']+)`),
	regexp.MustCompile(`(?i)\bbearer\s+([a-z0-9._~+/=-]{8,})`),
	regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:([^\s/@]+)@`),
	regexp.MustCompile(`\b((?:AKIA|ASIA)[0-9A-Z]{16})\b`),
	regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{20,})\b`),
	regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)`),
	regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
}

// secretWord is a name as environments, command lines and headers have it.
const secretWord = `(?:(?:[a-z0-9]+[_-])*[a-z0-9]*(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|` +
	`encryption[_-]?key|signing[_-]?key|credentials?)(?:[_-](?:key|base|value|data))*|(?:[a-z0-9]+[_-])+pass)`

// secretHints are what every secret pattern needs some of, in lower case: the
// patterns cost too much to try them on every name of a report.
var secretHints = []string{"pass", "pwd", "secret", "token", "key", "credential", "authorization", "bearer", "://",
	"akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "eyj"}

// notSecret is what stands behind a secret's name and tells nothing: an
// address, which is evidence, or a word for no value.
var notSecret = regexp.MustCompile(`(?i)^(?:\(?(?:0x[0-9a-f]{1,16}|nullptr|null|nil|none|true|false)\)?[.)\]]*|<[a-z]+>?|%[a-z]+|\[redacted\].*)$`)

// secretName finds variables whose value is a secret whatever its form.
var secretName = regexp.MustCompile(`(?i)(?:password|passwd|passphrase|secret|api_?key|private_?key|` +
	`(?:auth|access|session|csrf|refresh|bearer)_?token|credential|^pwd$|_pwd$)`)

func redactText(text string) string {
	lower := strings.ToLower(text)
	hinted := false
	for _, h := range secretHints {
		hinted = hinted || strings.Contains(lower, h)
	}
	if !hinted {
		return text
	}
	for _, p := range secretPatterns {
		text = redactPattern(p, text)
	}
	return text
}

func redactPattern(p *regexp.Regexp, text string) string {
	var b strings.Builder
	last := 0
	for _, m := range secretsOf(p, text) {
		b.WriteString(text[last:m[0]] + redactedMark)
		last = m[1]
	}
	return b.String() + text[last:]
}

// secretsOf returns where the secrets that a pattern finds start and end.
func secretsOf(p *regexp.Regexp, text string) (list [][2]int) {
	for _, m := range p.FindAllStringSubmatchIndex(text, -1) {
		if !notSecret.MatchString(text[m[2]:m[3]]) {
			list = append(list, [2]int{m[2], m[3]})
		}
	}
	return list
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\.\.\.)?`)

// redactQuoted replaces all strings; addresses and numbers stay, they are
// evidence.
func redactQuoted(text string) string {
	return redactText(quoted.ReplaceAllString(text, `"`+redactedMark+`"`))
}

// secretLiteral finds a string that source code gives to a secret's name. What
// is not quoted there is code.
var secretLiteral = regexp.MustCompile(`(?i)` + secretWord + `(?:\[\d*\])?["']?\s*[=:(,]\s*"([^"]+)"`)

func redactSource(text string) string { return redactPattern(secretLiteral, text) }

// redacting replaces secrets.
var redacting = edits{text: redactText, secret: redactQuoted, source: redactSource, damage: redactDamage, bytes: secretBytes}
