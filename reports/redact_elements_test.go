package reports

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
)

// codes is an array of character codes, such as wchar_t, which has no text.
func codes(name, text string) evidence.Variable {
	v := evidence.Variable{Name: name, Type: "wchar_t [24]"}
	var list []string
	for i := range len(text) {
		code := fmt.Sprint(text[i])
		list = append(list, code)
		v.Value.Fields = append(v.Value.Fields, evidence.Variable{Name: fmt.Sprintf("[%d]", i), Type: "wchar_t", Value: evidence.Value{Text: code}})
	}
	v.Value.Text = "{" + strings.Join(append(list, "..."), ", ") + "}"
	return v
}

// A secret in an array of characters' codes is in no format.
func TestSecretsInCodes(t *testing.T) {
	c := sample()
	frame := &c.Stacks[0].Stack.Frames[0]
	frame.Locals = append(frame.Locals, codes("line", "pw=Q7xy"), codes("password", "Q7xy"), codes("page", "Q8xy"))
	for _, name := range Formats() {
		text := render(t, c, Options{Format: Format(name)})
		flat := strings.NewReplacer(" ", "", "\n", "", "\"", "").Replace(text)
		for _, secret := range []string{"81, 55, 120", "[0] = 81, [1] = 55", "= 81, [4] = 55"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", name, secret)
			}
		}
		if strings.Contains(flat, "value:{text:81}},{name:[4],type:wchar_t,value:{text:55}") {
			t.Errorf("%s shows the elements", name)
		}
		if Format(name) == JSON && !strings.Contains(text, "{81, 56, 120") {
			t.Errorf("%s does not show the text that is no secret", name)
		}
	}
	if frame.Locals[len(frame.Locals)-2].Value.Fields[0].Value.Text != "81" {
		t.Error("the case itself was changed")
	}
}
