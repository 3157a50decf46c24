package secrets

import "strings"

// urlPasswords finds the passwords in URLs (RFC 3986, section 3.2.1), also where a text was
// cut before the host, or the password has a slash.
func urlPasswords(text string, hits []hit) (spans []Span) {
	const longest = 1 << 10
	for _, h := range hits {
		if table().words[h.word] != "://" {
			continue
		}
		start := h.at + len("://")
		end := start
		for end < len(text) && end < start+longest && text[end] > ' ' && strings.IndexByte("\"'`<>\\", text[end]) < 0 {
			end++
		}
		if s := userPassword(text[start:end]); s.Start < s.End && !tellsNothing(text[start+s.Start:start+s.End]) {
			spans = append(spans, Span{start + s.Start, start + s.End})
		}
	}
	return spans
}

// userPassword is the password in what follows the scheme of a URL. What follows a colon is
// a port if it is a number and no host follows it.
func userPassword(rest string) Span {
	colon := strings.IndexAny(rest, ":/?#@[")
	if colon < 0 || rest[colon] != ':' {
		return Span{}
	}
	start := colon + 1
	after := rest[start:]
	host := strings.IndexAny(after, "/?#")
	if host < 0 {
		host = len(after)
	}
	if at := strings.LastIndexByte(after[:host], '@'); at >= 0 {
		return Span{start, start + at}
	}
	if digits := len(after) - len(strings.TrimLeft(after, "0123456789")); digits == len(after) || digits > 0 && strings.IndexByte("/?#,;:.)]}", after[digits]) >= 0 {
		return Span{}
	}
	if at := strings.LastIndexByte(after, '@'); at >= 0 && !strings.ContainsAny(after[:1], "%$<{") {
		return Span{start, start + at}
	}
	if cut := strings.TrimRight(after, ".,;:)]}"); host == len(after) && !strings.Contains(strings.ToLower(cut), "port") {
		return Span{start, start + len(cut)}
	}
	return Span{}
}
