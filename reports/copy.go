package reports

import (
	"encoding/hex"
	"reflect"
	"strings"

	"diagnose/evidence"
)

// edits change the strings of a report. source edits lines of source, which are separated by line
// feeds. named, if set, returns an edit for variables whose name is that of a secret. value, if
// set, edits values. text edits all other strings except words of a fixed set. damage edits the
// bytes of damaged memory, of which bytes marks those to hide.
type edits struct {
	text, source func(string) string
	named        func(name string) func(string) string
	value        func(string) string
	damage       func(evidence.Damage) evidence.Damage
	bytes        func(data []byte, hidden []bool)
}

// asIs changes nothing.
var asIs = edits{text: same[string], source: same[string], damage: same[evidence.Damage]}

func same[T any](v T) T { return v }

// copied returns a copy of v with its strings edited, and with empty lists in place of missing ones
// where the JSON document always has a list. It uses reflection so that no field can be forgotten.
func copied[T any](v *T, e edits) *T {
	return e.copyOf(reflect.ValueOf(v)).Interface().(*T)
}

func (e edits) copyOf(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return v // a word of a fixed set, which readers know
		}
		out.SetString(e.text(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(e.copyOf(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(e.copyOf(v.Index(i)))
		}
	case reflect.Struct:
		out.Set(v) // the fields that are not exported are no text
		e.within(v).copyFields(out, v)
		// Bytes are no text: a pattern that matches some of their digits would spoil them, and
		// would not find the text in them.
		switch x := v.Interface().(type) {
		case evidence.Value:
			if hidden := e.within(v).hiddenElements(x.Fields); hidden != nil {
				out.Set(reflect.ValueOf(withoutElements(out.Interface().(evidence.Value), hidden)))
			}
		case evidence.Damage:
			if hasBytes(&x) {
				out.Set(reflect.ValueOf(e.damage(x)))
			}
		case evidence.Bytes:
			if d := (evidence.Damage{Bytes: x.Hex}); x.Hex != "" && hasBytes(&d) {
				d = e.damage(evidence.Damage{Bytes: x.Hex, Text: x.Text})
				out.Set(reflect.ValueOf(evidence.Bytes{Hex: d.Bytes, Text: d.Text}))
			}
		case evidence.StackOverrun:
			if e.secretArray(&x) {
				o := out.Interface().(evidence.StackOverrun)
				o.Contents = hiddenContents(o.Contents)
				out.Set(reflect.ValueOf(o))
			}
		case evidence.Source:
			if len(x.Lines) > 0 {
				out.FieldByName("Lines").Set(reflect.ValueOf(e.editSource(x.Lines)))
			}
		}
	default:
		return v
	}
	return out
}

func hasBytes(d *evidence.Damage) bool {
	for _, text := range []string{d.Before, d.Bytes, d.Expected} {
		if _, err := hex.DecodeString(text); err != nil {
			return false
		}
	}
	return true
}

func (e edits) copyFields(out, v reflect.Value) {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		field := e.copyOf(v.Field(i))
		if field.Kind() == reflect.Slice && field.IsNil() && !strings.Contains(v.Type().Field(i).Tag.Get("json"), "omitempty") {
			field = reflect.MakeSlice(field.Type(), 0, 0)
		}
		out.Field(i).Set(field)
	}
}

// within returns the edits for the parts of a struct.
func (e edits) within(v reflect.Value) edits {
	name := ""
	switch x := v.Interface().(type) {
	case evidence.SourceLine:
		e.text = e.source
	case evidence.Source:
		if len(x.Lines) > 0 {
			e.source = same // editSource edits all of them together
		}
	case evidence.Value:
		if e.value != nil {
			e.text = e.value
		}
	case evidence.Variable:
		name = x.Name
	case evidence.Suspect:
		name = x.Name
	case evidence.Operand:
		name = x.Symbol
	case evidence.OriginStep:
		name = x.Symbol
	case evidence.CheckedOperand:
		name = x.Name
	case evidence.Fact:
		name = x.Name
	}
	if e.named != nil && name != "" {
		if edit := e.named(name); edit != nil {
			e.text = edit
		}
	}
	return e
}
