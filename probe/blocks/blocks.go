package blocks

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Bounds of debug code.
const (
	MostBytes  = 1 << 20 // of a file
	MostBlocks = 256     // in a file
)

// The markers of debug code in a copy of the program's source, each on a line of its own.
const (
	Begin = "DIAGNOSE_BEGIN"
	End   = "DIAGNOSE_END"
)

// Block is C code that runs before a line of the program.
type Block struct {
	// Text is the code, the statements of a block of C. Its first line is Line of the file that it was read from.
	Text string
	Line int
	// At is FILE:LINE of the recorded source.
	At string
}

// Part is code outside of all functions: functions and variables of the debug code.
type Part struct {
	Text string
	Line int
}

// Source is a file of debug code.
type Source struct {
	Name   string
	Blocks []Block
	Parts  []Part
	// Includes are the headers that are included, each as it is written: <stdio.h>.
	Includes []string
	// Copied are the lines that are copied from a source file of the program; nil: the file is no such copy.
	Copied []Line
}

// Line is a line of a file, without its end.
type Line struct {
	Number int
	Text   string
}

// Error names the mistake in a file of debug code.
type Error struct {
	File    string
	Line    int // 0: the file as a whole
	Problem string
}

func (e *Error) Error() string { return "blocks: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *Error) Bare() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// Parse reads debug code. In a file with Begin on a line of its own, everything else is a copy of the program's source file of that
// name: code between the markers is a block where it is in a function, and a part elsewhere. In another file blocks are written
// at FILE:LINE { ... }, and all else is parts. The error is an *Error.
func Parse(name string, data []byte) (*Source, error) {
	p := &parser{source: &Source{Name: name}, text: string(data)}
	var err error
	switch {
	case len(data) > MostBytes:
		err = p.errorAt(0, "it has more than %d bytes", MostBytes)
	case strings.IndexByte(p.text, 0) >= 0:
		err = p.errorAt(0, "it is no text")
	case p.marked():
		err = p.copied()
	default:
		err = p.placed()
	}
	if err != nil {
		return nil, err
	}
	if len(p.source.Blocks) == 0 {
		return nil, p.errorAt(0, "it has no code to run: mark some with %s and %s, or write at FILE:LINE { ... }", Begin, End)
	}
	return p.source, nil
}

type parser struct {
	source *Source
	text   string
}

func (p *parser) errorAt(line int, format string, args ...any) error {
	return &Error{File: p.source.Name, Line: line, Problem: fmt.Sprintf(format, args...)}
}

func isMarker(line, marker string) bool {
	return strings.TrimSuffix(strings.TrimSpace(line), ";") == marker
}

func (p *parser) marked() bool {
	for line := range strings.Lines(p.text) {
		if isMarker(line, Begin) || isMarker(line, End) {
			return true
		}
	}
	return false
}

// region is marked code: its text and its first line, and how many lines of the recorded source are before.
type region struct {
	text         string
	line, before int
}

// copied reads a copy of the program's source.
func (p *parser) copied() error {
	regions, recorded, err := p.regions()
	if err != nil {
		return err
	}
	tokens, _ := lex(recorded)
	for _, r := range regions {
		depth, next := 0, 0
		for i := range tokens {
			if tokens[i].line > r.before {
				next = tokens[i].line
				break
			}
			depth += braces(tokens[i].text)
		}
		if depth <= 0 {
			if err := p.addPart(r.text, r.line); err != nil {
				return err
			}
			continue
		}
		if next == 0 {
			return p.errorAt(r.line, "nothing of the program is after the code")
		}
		if err := p.addBlock(r.text, r.line, fmt.Sprintf("%s:%d", filepath.Base(p.source.Name), next)); err != nil {
			return err
		}
	}
	return nil
}

// regions splits the text into the marked code and the recorded source.
func (p *parser) regions() (list []region, recorded string, err error) {
	var own, rest strings.Builder
	number, began, before := 0, 0, 0
	for line := range strings.Lines(p.text) {
		number++
		switch {
		case isMarker(line, Begin) && began != 0:
			return nil, "", p.errorAt(number, "%s again before the %s of line %d", Begin, End, began)
		case isMarker(line, Begin):
			began = number
		case isMarker(line, End) && began == 0:
			return nil, "", p.errorAt(number, "%s without %s", End, Begin)
		case isMarker(line, End):
			list = append(list, region{own.String(), began + 1, before})
			own.Reset()
			began = 0
		case began != 0:
			own.WriteString(line)
		default:
			before++
			rest.WriteString(line)
			p.source.Copied = append(p.source.Copied, Line{number, strings.TrimRight(line, "\r\n")})
		}
	}
	if began != 0 {
		return nil, "", p.errorAt(began, "%s without %s", Begin, End)
	}
	return list, rest.String(), nil
}

func braces(text string) int {
	switch text {
	case "{":
		return 1
	case "}":
		return -1
	}
	return 0
}

// place matches the head of a block in a file of its own.
var place = regexp.MustCompile(`^at[ \t]+([^\s{}"]+:[0-9]+)[ \t]*\{`)

// placed reads a file that names the places.
func (p *parser) placed() error {
	tokens, _ := lex(p.text)
	depth, partStart := 0, 0
	for i := 0; i < len(tokens); i++ {
		t := &tokens[i]
		head := place.FindStringSubmatch(p.text[t.start:])
		if depth != 0 || head == nil || t.text != "at" {
			depth += braces(t.text)
			continue
		}
		if err := p.addPart(p.text[partStart:t.start], 1+strings.Count(p.text[:partStart], "\n")); err != nil {
			return err
		}
		start := t.start + len(head[0])
		end := -1
		for inner := 0; i < len(tokens); i++ {
			if tokens[i].start < start-1 {
				continue
			}
			if inner += braces(tokens[i].text); inner == 0 {
				end = tokens[i].start
				break
			}
		}
		if end < 0 {
			return p.errorAt(t.line, "the code has no closing brace")
		}
		if err := p.addBlock(p.text[start:end], t.line, head[1]); err != nil {
			return err
		}
		partStart = end + 1
	}
	return p.addPart(p.text[partStart:], 1+strings.Count(p.text[:partStart], "\n"))
}

func (p *parser) addBlock(text string, line int, at string) error {
	text, err := p.takeIncludes(text, line)
	if err != nil {
		return err
	}
	if len(p.source.Blocks) == MostBlocks {
		return p.errorAt(line, "there are more than %d blocks", MostBlocks)
	}
	p.source.Blocks = append(p.source.Blocks, Block{Text: text, Line: line, At: at})
	return nil
}

func (p *parser) addPart(text string, line int) error {
	text, err := p.takeIncludes(text, line)
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) != "" {
		p.source.Parts = append(p.source.Parts, Part{text, line})
	}
	return nil
}

// header matches what follows #include.
var (
	include = regexp.MustCompile(`^#[ \t]*include\b[ \t]*(.*)`)
	header  = regexp.MustCompile(`^<[A-Za-z0-9_./+-]+>$`)
)

// takeIncludes moves the includes out of code, which keeps its lines, and checks that its braces are paired: code that closed the
// function that is made of it would be outside of it.
func (p *parser) takeIncludes(text string, line int) (string, error) {
	tokens, directives := lex(text)
	depth := 0
	for i := range tokens {
		if depth += braces(tokens[i].text); depth < 0 {
			return "", p.errorAt(line+tokens[i].line-1, "a closing brace without an opening one")
		}
	}
	if depth != 0 {
		return "", p.errorAt(line, "an opening brace of the code is not closed")
	}
	var b strings.Builder
	at := 0
	for _, d := range directives {
		m := include.FindStringSubmatch(d.text)
		if m == nil {
			continue
		}
		name, _, _ := strings.Cut(m[1], "//")
		name, _, _ = strings.Cut(name, "/*")
		name = strings.TrimSpace(name)
		if !header.MatchString(name) || strings.Contains(name, "..") {
			return "", p.errorAt(line+d.line-1, "only headers of the system can be included, as in #include <stdio.h>")
		}
		p.source.Includes = append(p.source.Includes, name)
		b.WriteString(text[at:d.start])
		at = d.end
	}
	b.WriteString(text[at:])
	return b.String(), nil
}
