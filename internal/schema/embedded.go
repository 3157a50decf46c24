package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// relaxEmbedded makes the fields of embedded pointers optional: encoding/json leaves them out where the pointer is nil.
func relaxEmbedded(s *jsonschema.Schema, t reflect.Type, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		if d := s.Definitions[t.Name()]; d != nil && f.Anonymous && f.Type.Kind() == reflect.Pointer {
			d.Required = slices.DeleteFunc(d.Required, func(name string) bool { return hasMember(f.Type.Elem(), name) })
		}
		relaxEmbedded(s, f.Type, seen)
	}
}

// hasMember reports whether a struct has a field with this name in JSON.
func hasMember(t reflect.Type, name string) bool {
	for i := range t.NumField() {
		if own, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); own == name {
			return true
		}
	}
	return false
}
