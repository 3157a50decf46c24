package reports

import (
	"strings"

	"diagnose/evidence"
)

// hiddenElements says which elements of an array are replaced if the array is read as one text.
// Each element is only the code of a character. It returns nil if none is replaced.
func (e edits) hiddenElements(fields []evidence.Variable) (hidden []bool) {
	const shortest, separator = 4, ", ["
	if len(fields) < shortest {
		return nil
	}
	parts := make([]string, len(fields))
	for i, f := range fields {
		text := f.Value.Text
		if !strings.HasPrefix(f.Name, "[") || text == "" || text[0] < '0' || text[0] > '9' || len(f.Value.Fields) > 0 {
			return nil
		}
		parts[i] = f.Name[1:] + " = " + text
	}
	edited := strings.Split(strings.TrimPrefix(e.text("["+strings.Join(parts, separator)), "["), separator)
	for i := range parts {
		if len(edited) == len(parts) && edited[i] == parts[i] {
			continue
		}
		if hidden == nil {
			hidden = make([]bool, len(parts))
		}
		hidden[i] = true
	}
	return hidden
}

// withoutElements replaces elements of an array, also in its short form ("{1, 2, ...}").
func withoutElements(v evidence.Value, hidden []bool) evidence.Value {
	list := strings.Split(strings.TrimSuffix(strings.TrimPrefix(v.Text, "{"), "}"), ", ")
	for i := range hidden {
		if !hidden[i] {
			continue
		}
		v.Fields[i].Value.Text = redactedMark // the copy's own
		if i < len(list) && list[i] != "..." {
			list[i] = redactedMark
		}
	}
	if v.Text != "" {
		v.Text = "{" + strings.Join(list, ", ") + "}"
	}
	return v
}
