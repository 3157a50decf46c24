package mi

import (
	"reflect"
	"testing"
)

func TestRecord(t *testing.T) {
	for _, test := range []struct {
		line string
		want Record
	}{
		{"(gdb) ", Record{}},
		{`~"a \"b\"\n\303\244"`, Record{Kind: '~', Text: "a \"b\"\nä"}},
		{"12^done", Record{Token: "12", Kind: '^', Class: "done", Results: Tuple{}}},
		{`*stopped,reason="breakpoint-hit",frame={addr="0x1",args=[{name="a",value="1"}]},thread-id="1"`,
			Record{Kind: '*', Class: "stopped", Results: Tuple{"reason": "breakpoint-hit", "thread-id": "1",
				"frame": Tuple{"addr": "0x1", "args": List{Tuple{"name": "a", "value": "1"}}}}}},
		{`3^done,stack=[frame={level="0"},frame={level="1"}],x=[]`, Record{Token: "3", Kind: '^', Class: "done",
			Results: Tuple{"stack": List{Tuple{"level": "0"}, Tuple{"level": "1"}}, "x": List{}}}},
	} {
		got, err := ParseRecord(test.line)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s is %#v, %v", test.line, got, err)
		}
	}
	for _, line := range []string{`~"a`, "1^done,a=", "1^done,a=[", "1^done,a={b=", `1^done,a="b"]`, "1^done,a"} {
		if _, err := ParseRecord(line); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(`*stopped,reason="breakpoint-hit",frame={addr="0x1",args=[{name="a",value="1"}]},thread-id="1"`)
	f.Add(`~"\303\244`)
	f.Add("1^done,a=[[[[{{")
	f.Fuzz(func(t *testing.T, line string) { ParseRecord(line) })
}
