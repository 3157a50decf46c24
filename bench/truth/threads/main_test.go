package main

import (
	"strings"
	"testing"
)

func TestPlanned(t *testing.T) {
	o := options{root: "../../..", ways: "turns", only: "queue,ring"}
	list, err := planned(&o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, task := range list {
		got = append(got, task.build()+" "+task.String())
	}
	if s := strings.Join(got, ", "); s != "gcc queue-O0-turns, clang queue-O2-turns, g++ ring-O0-turns, clang++ ring-O2-turns" {
		t.Error(s)
	}
	o.only = "quee"
	if _, err := planned(&o); err == nil || !strings.Contains(err.Error(), `no program "quee"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestChoose(t *testing.T) {
	b := bench{options: &options{per: 2, seed: 1}}
	list := b.choose([]string{"f1", "f2", "f3"}, []string{"p"})
	if len(list) != 4 || list[0].Passing != nil || list[1].Recording != list[0].Recording || list[1].Passing[0] != "p" || list[2].Recording == list[0].Recording {
		t.Errorf("%+v", list)
	}
	if list := b.choose([]string{"f1"}, nil); len(list) != 1 || list[0].Passing != nil {
		t.Errorf("no run passed: %+v", list)
	}
	if list := b.choose(nil, []string{"p"}); len(list) != 0 {
		t.Errorf("no run failed: %+v", list)
	}
}
