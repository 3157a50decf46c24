package record

import (
	"encoding/json"
	"unicode/utf8"
)

// Text is a string of the program: any bytes but NUL. In JSON it is a string if it is UTF-8,
// and otherwise {"base64": "..."}, as a replay needs every byte.
type Text string

type rawText struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(rawText{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var raw rawText
		if err := decodeStrict(data, &raw); err != nil {
			return err
		}
		*t = Text(raw.Base64)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// Texts converts strings to Text, as of os.Environ.
func Texts(list []string) []Text {
	out := make([]Text, len(list))
	for i, s := range list {
		out[i] = Text(s)
	}
	return out
}

// Strings is the inverse of Texts, for exec.
func Strings(list []Text) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}
