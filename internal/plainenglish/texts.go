package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// span is a stretch of prose: the text of a comment, of a string literal or of a document.
type span struct {
	file string
	line int // the number of the text's first line
	text string
}

// words counts the words of the text.
func (s span) words() int { return len(strings.Fields(s.text)) }

// readers has, by the extension of a file's name, the function that finds its prose.
var readers = map[string]func(name string, source []byte) ([]span, error){
	".go": goSpans,
	".c":  cSpans,
	".h":  cSpans,
	".S":  cSpans,
	".md": markdownSpans,
}

// fileSpans returns the prose of a file, and none for a file of a kind that it does not know.
func fileSpans(name string) ([]span, error) {
	read := readers[filepath.Ext(name)]
	if read == nil {
		return nil, nil
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if generated(source) {
		return nil, nil
	}
	return read(name, source)
}

// generated tells a generated file by the line that https://go.dev/s/generatedcode defines.
func generated(source []byte) bool {
	for line := range bytes.Lines(source) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(line, []byte(" DO NOT EDIT.")) {
			return true
		}
		if bytes.HasPrefix(line, []byte("package ")) {
			break
		}
	}
	return false
}

// goSpans returns the comments and the string literals of a Go file, without the paths of
// imports and the tags of fields.
func goSpans(name string, source []byte) ([]span, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var spans []span
	add := func(pos token.Pos, text string) {
		spans = append(spans, span{name, fset.Position(pos).Line, text})
	}
	for _, group := range file.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(withoutCommentMarks(c.Text) + "\n")
		}
		add(group.Pos(), text.String())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				add(n.Pos(), n.Value)
			}
		}
		return true
	})
	return spans, nil
}

// withoutCommentMarks returns the text of a comment with as many lines as it had.
func withoutCommentMarks(comment string) string {
	if text, ok := strings.CutPrefix(comment, "//"); ok {
		return text
	}
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimSpace(line), "*")
	}
	return strings.Join(lines, "\n")
}

// cSpans returns the comments of a C or assembler file. Comments on lines that follow each
// other are one text.
func cSpans(name string, source []byte) ([]span, error) {
	var spans []span
	line, next := 1, 0
	for i := 0; i < len(source); {
		rest := source[i:]
		size := 1
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			if size = bytes.IndexByte(rest, '\n'); size < 0 {
				size = len(rest)
			}
			text := withoutCommentMarks(string(rest[:size])) + "\n"
			if next == line && len(spans) > 0 {
				spans[len(spans)-1].text += text
			} else {
				spans = append(spans, span{name, line, text})
			}
			next = line + 1
		case bytes.HasPrefix(rest, []byte("/*")):
			if size = bytes.Index(rest, []byte("*/")) + 2; size < 2 {
				size = len(rest)
			}
			spans = append(spans, span{name, line, withoutCommentMarks(string(rest[:size]))})
		case rest[0] == '"' || rest[0] == '\'':
			size = quotedSize(rest)
		}
		line += bytes.Count(rest[:size], []byte("\n"))
		i += size
	}
	return spans, nil
}

// quotedSize returns the size of the literal that text begins with, at most up to the end of
// the line: an apostrophe in an assembler's comment opens no literal.
func quotedSize(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			return i
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

// markdownSpans returns the text of a document without its code.
func markdownSpans(name string, source []byte) ([]span, error) {
	var text strings.Builder
	fenced := false
	for line := range strings.Lines(string(source)) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			line = "\n"
		}
		text.WriteString(withoutInlineCode(line))
	}
	return []span{{name, 1, text.String()}}, nil
}

func withoutInlineCode(line string) string {
	parts := strings.Split(line, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		parts[i] = "code"
	}
	return strings.Join(parts, " ")
}
