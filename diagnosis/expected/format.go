package expected

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/staticscan"
)

// formatted are the functions of the C library that take a format of narrow characters, with the index of that argument (ISO C
// 7.23.6, POSIX, glibc's debug/ for those with __).
var formatted = map[string]int{
	"printf": 0, "fprintf": 1, "dprintf": 1, "sprintf": 1, "snprintf": 2, "asprintf": 1,
	"vprintf": 0, "vfprintf": 1, "vdprintf": 1, "vsprintf": 1, "vsnprintf": 2, "vasprintf": 1,
	"__printf_chk": 1, "__fprintf_chk": 2, "__dprintf_chk": 2, "__sprintf_chk": 3, "__snprintf_chk": 4, "__asprintf_chk": 2,
	"__vprintf_chk": 1, "__vfprintf_chk": 2, "__vdprintf_chk": 2, "__vsprintf_chk": 3, "__vsnprintf_chk": 4, "__vasprintf_chk": 2,
	"syslog": 1, "vsyslog": 1, "__syslog_chk": 2, "__vsyslog_chk": 2,
	"err": 1, "errx": 1, "warn": 0, "warnx": 0, "verr": 1, "verrx": 1, "vwarn": 0, "vwarnx": 0, "error": 2,
}

// innerFormatted are functions in the C library that hand the format on; its debug information names their parameter.
var innerFormatted = map[string]bool{"__vfprintf_internal": true, "vfprintf": true, "__vsnprintf_internal": true, "__vsprintf_internal": true}

// longestFormat bounds the text of a format that is read.
const longestFormat = 512

// NonConstant returns the format of the printf family's function that failed, if it is in memory that can be written: then it is
// no constant of the program. Nil: it is one, or the format is not known.
func NonConstant(in Input) *evidence.Format {
	if !in.usable() {
		return nil
	}
	switch in.Failure.Kind {
	case evidence.FortifyFailure, evidence.Abort:
	default:
		if in.Failure.Fault == nil {
			return nil
		}
	}
	scanned := staticscan.Input{Process: in.Process, Thread: in.Thread, Frames: in.Frames, Signal: in.Failure.Signal}
	own := staticscan.OwnFrame(scanned)
	if own < 1 || len(in.Frames[own].Calls) == 0 {
		return nil
	}
	site, name := in.Frames[own].Calls[0].Site, ""
	var at uint64
	known := false
	if tail, callee := ownTail(&in.Frames[own-1]); tail != nil {
		site, name = *tail, callee
	} else if call, ok := staticscan.CallOf(scanned, own); ok {
		name = call.Library
		if index, takes := formatted[name]; takes {
			at, known = staticscan.CallArgument(scanned, own, index)
		}
	}
	index, takes := formatted[name]
	if !takes {
		return nil
	}
	if !known {
		at, known = in.innerFormat(own)
	}
	m := in.Process.MappingAt(evidence.Addr(at))
	if !known || m == nil || !m.Writable() {
		return nil
	}
	text, whole, err := image.CString(in.Process, evidence.Addr(at), longestFormat)
	if err != nil {
		return nil
	}
	f := &evidence.Format{Function: name, Argument: index, Addr: evidence.Addr(at), Text: text, Whole: whole, Place: in.Process.Place(evidence.Addr(at)),
		Site: &site, Proof: evidence.FromCore}
	f.Conversions, f.Writes = conversions(text)
	f.Variable = in.leadsTo(own, f.Addr)
	return f
}

// ownTail is the place of the program's own that left no frame when it called what the frame is of, and the function that it
// called; nil: there is none.
func ownTail(f *unwind.Frame) (site *evidence.Site, callee string) {
	inner := f.Calls
	for i := range f.TailCalls {
		calls := f.TailCalls[i].Calls
		for k := range calls {
			if !image.LibraryCode(&calls[k].Site) && len(inner) > 0 {
				return &calls[k].Site, plainName(inner[len(inner)-1].Site.Function)
			}
		}
		inner = calls
	}
	return nil, ""
}

// plainName is a function as programs call it: the C library's own names have underscores or __GI_ before that.
func plainName(name string) string {
	name = strings.TrimPrefix(name, "__GI_")
	for {
		if _, takes := formatted[name]; takes || !strings.HasPrefix(name, "_") {
			return name
		}
		name = name[1:]
	}
}

// innerFormat is the format that the innermost function of the C library with one was given, by its debug information.
func (in *Input) innerFormat(own int) (uint64, bool) {
	for i := range own {
		for level, c := range in.Frames[i].Calls {
			if !innerFormatted[c.Site.Function] {
				continue
			}
			s := in.scopeAt(i, level)
			if s == nil {
				continue
			}
			for _, v := range s.locals {
				if v.Name == "format" && v.Parameter && v.Type != nil && v.Type.Kind() == debuginfo.KindPointer {
					return s.number(s.objectOf(v))
				}
			}
		}
	}
	return 0, false
}

// leadsTo is the variable of a frame that points to an address, or is an array there; empty: none does.
func (in *Input) leadsTo(frame int, at evidence.Addr) string {
	for level := range in.Frames[frame].Calls {
		s := in.scopeAt(frame, level)
		if s == nil {
			continue
		}
		for _, v := range s.locals {
			if v.Type == nil || v.Artificial {
				continue
			}
			o := s.objectOf(v)
			switch v.Type.Kind() {
			case debuginfo.KindPointer:
				if n, known := s.number(o); known && evidence.Addr(n) == at {
					return v.Name
				}
			case debuginfo.KindArray:
				if o.known && o.bytes == nil && o.addr == at {
					return v.Name
				}
			}
		}
	}
	return ""
}

// conversions counts the conversion specifications of a format that take an argument, and those that are %n (ISO C 7.23.6.1).
func conversions(format string) (list, writes int) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("0123456789$-+ #'.*hlqjzZtLI", format[i]) >= 0; i++ {
			if format[i] == '*' {
				list++
			}
		}
		switch {
		case i >= len(format):
			return list, writes
		case format[i] == '%' || format[i] == 'm':
		case format[i] == 'n':
			list, writes = list+1, writes+1
		default:
			list++
		}
	}
	return list, writes
}
