package image

import (
	"testing"

	"diagnose/evidence"
)

func TestContainerFunction(t *testing.T) {
	for function, want := range map[string]string{
		"std::vector<int>::push_back(int&&)":                                "std::vector<int>::push_back",
		"int& std::vector<int>::emplace_back<int>(int&&)":                   "std::vector<int>::emplace_back<int>",
		"std::__cxx11::list<conn>::erase(std::_List_const_iterator<conn>)":  "std::list<conn>::erase",
		"std::__1::map<int, std::__1::vector<int> >::clear()":               "std::map<int, std::vector<int> >::clear",
		"std::string::reserve(unsigned long)":                               "std::string::reserve",
		"std::unique_ptr<std::vector<int>>::reset(std::vector<int>*)":       "",
		"std::_Vector_base<int>::_M_deallocate(int*, unsigned long)":        "",
		"void use(std::vector<int>::iterator)":                              "",
		"std::vector<int>":                                                  "",
		"mystd::vector<int>::push_back":                                     "",
		"std::list<std::string":                                             "",
		"std::vector<std::pair<int, int>>& other::get<std::list<int>::x>()": "",
	} {
		got, ok := ContainerFunction(function)
		if got != want || ok != (got != "") {
			t.Errorf("%s: %q, %v, want %q", function, got, ok, want)
		}
	}
}

func TestInvalidatedBy(t *testing.T) {
	site := func(function, file string) evidence.Frame {
		return evidence.Frame{Site: evidence.Site{Function: function, File: file, Module: "prog", Line: 5}}
	}
	inner, outer := site("std::_Vector_base<int>::_M_deallocate()", "/usr/include/c++/12/x.h"), site("std::vector<int>::push_back()", "/usr/include/c++/12/x.h")
	own := site("add()", "add.cc")
	for _, c := range []struct {
		frames []evidence.Frame
		want   string
	}{
		{[]evidence.Frame{inner, outer, own}, "std::vector<int>::push_back"},
		{[]evidence.Frame{inner, own}, ""},
		{[]evidence.Frame{inner, outer}, ""},
		{[]evidence.Frame{own, outer}, ""},
		{nil, ""},
	} {
		got := ""
		if i := InvalidatedBy(&evidence.HeapCall{Stack: evidence.Stack{Frames: c.frames}}); i != nil {
			got = i.Function
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.frames, got, c.want)
		}
	}
	if InvalidatedBy(nil) != nil {
		t.Error("no call")
	}
}
