package reports

import (
	"encoding/hex"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/reports/secrets"
)

// hiddenByte stands for a byte of a secret in hexadecimal, hiddenCharacter in
// text.
const (
	hiddenByte      = "xx"
	hiddenCharacter = '*'
)

// hideDamage removes the marked bytes from memory that is shown as bytes: a name and its value may
// be in the object and past its end.
func hideDamage(d evidence.Damage, marks ...func(data []byte, hidden []bool)) evidence.Damage {
	before, errBefore := hex.DecodeString(d.Before)
	found, errFound := hex.DecodeString(d.Bytes)
	if errBefore != nil || errFound != nil {
		return d // no bytes; its strings are edited as text
	}
	data := slices.Concat(before, found)
	hidden := make([]bool, len(data))
	for _, mark := range marks {
		if mark != nil {
			mark(data, hidden)
		}
	}
	n := len(before)
	d.Before, d.Bytes = hexWithout(before, hidden[:n]), hexWithout(found, hidden[n:])
	d.Text = textWithout(found, hidden[n:])
	return d
}

// memoryText replaces bytes that are no text by a line feed, which ends a value as the zero byte
// after a string does.
func memoryText(data []byte) string {
	text := make([]byte, len(data))
	for i, c := range data {
		if text[i] = c; c < ' ' || c > '~' {
			text[i] = '\n'
		}
	}
	return string(text)
}

// secretBytes marks the bytes that belong to secrets.
func secretBytes(f *secrets.Finder) func(data []byte, hidden []bool) {
	return func(data []byte, hidden []bool) {
		for _, s := range f.Memory(data) {
			for i := s.Start; i < s.End; i++ {
				hidden[i] = true
			}
		}
	}
}

func hexWithout(data []byte, hidden []bool) string {
	var b strings.Builder
	for i, c := range data {
		if hidden[i] {
			b.WriteString(hiddenByte)
			continue
		}
		b.WriteString(hex.EncodeToString([]byte{c}))
	}
	return b.String()
}

func textWithout(data []byte, hidden []bool) string {
	text := make([]byte, len(data))
	for i, c := range data {
		switch {
		case hidden[i]:
			text[i] = hiddenCharacter
		case c < ' ' || c > '~':
			text[i] = '.'
		default:
			text[i] = c
		}
	}
	return string(text)
}

// secretArray reports whether an array that was overrun has the name of a secret and contents that may be one.
func (e edits) secretArray(o *evidence.StackOverrun) bool {
	if e.named == nil {
		return false
	}
	text := `"` + o.Contents.Text + `"`
	return slices.ContainsFunc(o.Arrays, func(a evidence.FrameArray) bool {
		edit := e.named(a.Name)
		return edit != nil && edit(text) != text
	})
}

// hiddenContents are contents of which no byte is shown.
func hiddenContents(b evidence.Bytes) evidence.Bytes {
	return evidence.Bytes{Hex: strings.Repeat(hiddenByte, len(b.Hex)/2), Text: strings.Repeat(string(hiddenCharacter), len(b.Text))}
}
