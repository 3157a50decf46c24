package ending

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// The bounds of the failed calls that no message names. What the program wrote to its standard error
// says more than they do, and what a runtime reported says it all if it names a failed call.
const (
	mostNear     = 4 // if there is a message on standard error
	mostReported = 2 // if there is a report
	mostProbes   = 2 // that only asked whether a file exists
)

// mostAlike bounds the paths of calls that differ in their paths alone.
const mostAlike = 8

// probes are calls that ask whether something exists. Programs make many that fail as expected.
var probes = map[uint64]bool{unix.SYS_STAT: true, unix.SYS_LSTAT: true, unix.SYS_NEWFSTATAT: true, unix.SYS_STATX: true, unix.SYS_ACCESS: true,
	unix.SYS_FACCESSAT: true, unix.SYS_FACCESSAT2: true, unix.SYS_READLINK: true, unix.SYS_READLINKAT: true}

// candidates keeps the failed calls whose stacks are read: those that a message names, and the last of
// the others. It drops those that a runtime made while it reported a failure.
func (f *found) candidates(messages []*message) {
	var kept []*call
	named, others := 0, 0
	reports := reportsOf(messages)
	for _, c := range slices.Backward(f.failed) {
		within := slices.ContainsFunc(reports, func(r *report) bool {
			return c.moment.Thread == r.writes[0].moment.Thread && c.position > r.writes[0].position && c.position < r.writes[len(r.writes)-1].position
		})
		if within {
			continue
		}
		count, most := &others, mostWalked
		if c.namedIn(messages) {
			count, most = &named, mostNamed
		}
		if *count++; *count > most {
			f.earlierFailed += c.times
			continue
		}
		kept = append(kept, c)
	}
	slices.Reverse(kept)
	f.failed = kept
}

// fold joins calls that the same code made in the same calls, and that failed equally: a search
// through directories. The last one represents them.
func (f *found) fold() {
	var kept []*call
	for _, c := range slices.Backward(f.failed) {
		if i := slices.IndexFunc(kept, c.sameSearch); i >= 0 {
			kept[i].alike = append(kept[i].alike, c)
		} else {
			kept = append(kept, c)
		}
	}
	slices.Reverse(kept)
	for _, c := range kept {
		slices.Reverse(c.alike)
	}
	f.failed = kept
}

func (c *call) sameSearch(o *call) bool {
	return c.seen && o.seen && c.number == o.number && c.errno == o.errno && c.moment.Thread == o.moment.Thread && len(c.stack.Frames) > 0 &&
		slices.EqualFunc(c.stack.Frames, o.stack.Frames, func(a, b evidence.Frame) bool { return a.Site.PC == b.Site.PC && a.CFA == b.CFA })
}

// choose keeps the failed calls that are reported: those that a message names, and the last of the
// others.
func (f *found) choose(messages []*message) {
	var kept []*call
	others, probing := 0, 0
	most := f.mostOthers(messages)
	for _, c := range slices.Backward(f.failed) {
		named := c.anyNamedIn(messages)
		if len(kept) == mostCalls || !named && (others == most || probes[c.number] && probing == mostProbes) {
			f.earlierFailed += c.times
			for _, o := range c.alike {
				f.earlierFailed += o.times
			}
			continue
		}
		if !named {
			others++
		}
		if !named && probes[c.number] {
			probing++
		}
		kept = append(kept, c)
	}
	slices.Reverse(kept)
	f.failed = kept
}

// mostOthers is how many calls are reported that no message names.
func (f *found) mostOthers(messages []*message) int {
	switch {
	case len(reportsOf(messages)) > 0 && slices.ContainsFunc(f.failed, func(c *call) bool { return c.anyNamedIn(messages) }):
		return 0
	case len(reportsOf(messages)) > 0:
		return mostReported
	case slices.ContainsFunc(messages, func(m *message) bool { return m.stream() == evidence.StandardError }):
		return mostNear
	}
	return mostCalls
}

// namedIn reports whether a message has a path that the call was given, or the last element of one.
func (c *call) namedIn(messages []*message) bool {
	return slices.ContainsFunc(c.paths(), func(p string) bool {
		return slices.ContainsFunc(messages, func(m *message) bool { return namesPath(m.complaint(), p) })
	})
}

// anyNamedIn: the call, or one that it represents.
func (c *call) anyNamedIn(messages []*message) bool {
	return c.namedIn(messages) || slices.ContainsFunc(c.alike, func(o *call) bool { return o.namedIn(messages) })
}

// complaint is the text of the message, and of a report what failed: the files of its stack are not
// those that calls failed for.
func (m *message) complaint() string {
	if m.report != nil {
		return m.report.panic.Text
	}
	return m.whole()
}

// paths are the paths that a failed call was given, as far as they are known.
func (c *call) paths() (list []string) {
	texts := c.logged.TextArguments()
	for _, p := range c.logged.Payloads {
		named := p.Kind == eventlog.PayloadText && slices.ContainsFunc(texts, func(i int) bool { return i < len(c.args) && c.args[i] == uint64(p.Addr) })
		if named {
			list = append(list, string(p.Data))
		}
	}
	return list
}

// namesPath reports whether a text has the last element of a path as a word.
func namesPath(text, name string) bool {
	const least = 3
	base := path.Base(name)
	if len(base) < least || !strings.Contains(text, base) {
		return false
	}
	return regexp.MustCompile(`(^|[^\w.-])` + regexp.QuoteMeta(base) + `($|[^\w-])`).MatchString(text)
}

// alikePaths are the paths of the calls that this one represents: the last ones.
func (c *call) alikePaths() (list []string) {
	for _, o := range c.alike {
		list = append(list, o.paths()...)
	}
	return list[max(0, len(list)-mostAlike):]
}

// alikeTimes counts them.
func (c *call) alikeTimes() int {
	n := 0
	for _, o := range c.alike {
		n += o.times
	}
	return n
}
