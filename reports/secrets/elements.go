package secrets

import "strings"

var (
	// elementStart begins an element of XML whose name ends in a secret's: <password, <wsse:Password.
	elementStart = lazily(`<(?:[\w.-]{1,64}:)?$`)
	// elementHead is the rest of its head, from the name on: attributes, group 1, and the end.
	elementHead = lazily(`^((?:[ \t\r\n]+[\w.:-]{1,64}[ \t]*=[ \t]*(?:"[^"<>]{0,512}"|'[^'<>]{0,512}'))*)[ \t\r\n]*/?>`)
	// valueAttribute are attributes that have an element's value, and their values.
	valueAttribute = lazily(`(?i)[ \t\r\n](?:[\w.-]{1,64}:)?(?:value|text|data|content|plain|plaintext|hash|digest|key|secret|password)[ \t]*=[ \t]*["']([^"']{1,512})["']`)
	// cdata is what a section of characters begins with (XML 1.0, section 2.7).
	cdata = "<![CDATA["
)

// elementValues are the values of an element of XML that has a secret's name: <password>x</password>,
// <password value="x"/>, and all texts of the elements inside of it. is: the name is an element's.
func elementValues(text string, n name) (spans []Span, is bool) {
	before := elementStart().FindString(text[max(0, n.Start-66):n.Start])
	head := elementHead().FindStringSubmatchIndex(text[n.End:min(len(text), n.End+2048)])
	if before == "" || head == nil {
		return nil, false
	}
	c := container{name: n, json: true, quoted: true}
	spans = attributeValues(text, Span{n.End + head[2], n.End + head[3]}, &c)
	begin := n.End + head[1]
	if text[begin-2] == '/' {
		return spans, true
	}
	if n.seen.elements.Start <= n.Start && n.Start < n.seen.elements.End {
		return spans, true // its texts are those of the element around it
	}
	start := n.Start - len(before)
	end, found := elementEnd(text, begin, before[1:]+text[n.Start:n.End], n.seen)
	// Without its end it may be a parameter of a template, or a word of a usage.
	if !found || !strings.HasPrefix(text[end:], "</") && start > 0 && strings.IndexByte(">\"\n\x00", text[start-1]) < 0 {
		return spans, len(spans) > 0
	}
	n.seen.elements = Span{n.Start, end}
	return append(spans, textsIn(text, Span{begin, end}, &c)...), true
}

// elementEnd is where the content of an element ends: at its end tag, or where the text was cut in
// the element's first text. A failed search costs of the work that one text is worth.
func elementEnd(text string, begin int, name string, earlier *seen) (int, bool) {
	window := text[begin:min(len(text), begin+longestValue)]
	if earlier.unclosed < mostWork {
		if i := strings.Index(window, "</"+name+">"); i >= 0 {
			return begin + i, true
		}
		earlier.unclosed += len(window)
	}
	end := strings.IndexAny(window, "<\n\"\x00")
	switch {
	case end < 0 && len(window) < longestValue:
		return len(text), true
	case end > 0 && (window[end] == 0 || isCut(window, end)):
		return begin + end, true
	}
	return 0, false
}

// textsIn are the texts of an element's content, and the values of attributes there.
func textsIn(text string, content Span, c *container) (spans []Span) {
	for at := content.Start; at < content.End; {
		if text[at] == '<' {
			if strings.HasPrefix(text[at:content.End], cdata) {
				at += len(cdata)
				end := content.End
				if i := strings.Index(text[at:end], "]]>"); i >= 0 {
					end = at + i
				}
				spans = append(spans, c.textIn(text, Span{at, end})...)
				at = end + len("]]>")
				continue
			}
			end := content.End
			if i := strings.IndexByte(text[at:end], '>'); i >= 0 {
				end = at + i + 1
			}
			spans = append(spans, attributeValues(text, Span{at, end}, c)...)
			at = end
			continue
		}
		end := content.End
		if i := strings.IndexByte(text[at:end], '<'); i >= 0 {
			end = at + i
		}
		spans = append(spans, c.textIn(text, Span{at, end})...)
		at = end
	}
	return spans
}

// textIn is a text without the blanks around it, if it is a secret.
func (c *container) textIn(text string, s Span) []Span {
	content := text[s.Start:s.End]
	s.Start += len(content) - len(strings.TrimLeft(content, " \t\r\n"))
	s.End -= len(content) - len(strings.TrimRight(content, " \t\r\n"))
	if s.Start >= s.End || !c.hides(text[s.Start:s.End], false) {
		return nil
	}
	return []Span{s}
}

func attributeValues(text string, head Span, c *container) (spans []Span) {
	for _, m := range valueAttribute().FindAllStringSubmatchIndex(text[head.Start:head.End], -1) {
		spans = append(spans, c.textIn(text, Span{head.Start + m[2], head.Start + m[3]})...)
	}
	return spans
}
