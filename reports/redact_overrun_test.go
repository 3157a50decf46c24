package reports

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// TestSecretArray: the contents of an overrun array are replaced if the array has the name of a secret, and if they
// have the form of one.
func TestSecretArray(t *testing.T) {
	for _, test := range []struct {
		name, text string
		shown      bool
	}{
		{"s.name", "to whom it may concern", true},
		{"password", "to whom it may concern", false},
		{"s.password", "correcthorsebattery", false},
		{"line", "password=correcthorsebattery", false},
	} {
		f := smashedFinding()
		f.Overrun.Arrays[0].Name = test.name
		f.Overrun.Contents = evidence.Bytes{Hex: hexOf(test.text), Text: test.text}
		got, _ := withoutSecrets(&f, nil)
		c := got.Overrun.Contents
		secret := strings.TrimPrefix(test.text, "password=")
		if shown := strings.Contains(c.Text, secret) || strings.Contains(c.Hex, hexOf(secret)); shown != test.shown {
			t.Errorf("%s with %q: %+v", test.name, test.text, c)
		}
		if len(c.Text) != len(test.text) || len(c.Hex) != 2*len(test.text) {
			t.Errorf("%s with %q: the length changed: %+v", test.name, test.text, c)
		}
	}
}

func hexOf(text string) string { return hexWithout([]byte(text), make([]bool, len(text))) }
