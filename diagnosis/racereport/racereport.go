package racereport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// The bounds of a text.
const (
	mostBytes    = 64 << 20
	mostLine     = 64 << 10
	mostRaces    = 64
	mostAccesses = 8
	mostCreated  = 16
	mostFrames   = 128
)

// Reports are the races of a text.
type Reports struct {
	// Races differ in their places: equal ones are counted. There are at most mostRaces; More were left out.
	Races []evidence.DataRace
	More  int
	// Cut counts reports that do not have both accesses: the text ends in them.
	Cut int
}

// ReadFile reads the races of a file, which must be a regular one.
func ReadFile(path string) (*Reports, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range r.Races {
		r.Races[i].Report = path
	}
	return r, nil
}

// The lines of a report (compiler-rt/lib/tsan/rtl/tsan_report.cpp, the part for Go).
var (
	beginLine   = "WARNING: DATA RACE"
	endLine     = "=================="
	accessLine  = regexp.MustCompile(`^(?:Previous )?([Rr]ead|[Ww]rite) at (0x[0-9a-f]{1,16}) by (?:main goroutine|goroutine (\d{1,9})):$`)
	createdLine = regexp.MustCompile(`^Goroutine (\d{1,9}) \((running|finished)\) created at:$`)
	frameLine   = regexp.MustCompile(`^  (\S.*)\(\)$`)
	placeLine   = regexp.MustCompile(`^      (.+):(\d{1,9}) \+0x([0-9a-f]{1,16})$`)
)

// Read reads the races of a text. Lines that are of no report are ignored.
func Read(from io.Reader) (*Reports, error) {
	limited := &io.LimitedReader{R: from, N: mostBytes + 1}
	s := bufio.NewScanner(limited)
	s.Buffer(make([]byte, 0, 4096), mostLine)
	p := &parser{out: &Reports{}}
	for s.Scan() {
		p.line(strings.TrimSuffix(s.Text(), "\r"))
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if limited.N == 0 {
		return nil, errors.New("the text of the race detector is too large")
	}
	p.end()
	return p.out, nil
}

// parser reads line by line.
type parser struct {
	out *Reports
	// race is the report that is read; nil between reports. stack is the list that frames are added to; nil: there is none.
	race  *evidence.DataRace
	stack *[]evidence.Site
	// place: the line before named the function of the last frame.
	place bool
}

func (p *parser) line(text string) {
	switch {
	case text == beginLine:
		p.end()
		p.race = &evidence.DataRace{Times: 1, Proof: evidence.Inferred}
		return
	case p.race == nil:
		return
	case text == endLine:
		p.end()
		return
	}
	if m := accessLine.FindStringSubmatch(text); m != nil {
		p.access(m)
	} else if m := createdLine.FindStringSubmatch(text); m != nil {
		p.created(m)
	} else if m := frameLine.FindStringSubmatch(text); m != nil && p.stack != nil && len(*p.stack) < mostFrames {
		*p.stack = append(*p.stack, evidence.Site{Function: m[1]})
		p.place = true
		return
	} else if m := placeLine.FindStringSubmatch(text); m != nil && p.place {
		at := &(*p.stack)[len(*p.stack)-1]
		at.File, at.Line = m[1], number(m[2])
		at.FunctionOffset, _ = strconv.ParseUint(m[3], 16, 64)
	} else if text == "" {
		p.stack = nil
	}
	p.place = false
}

func (p *parser) access(m []string) {
	p.stack = nil
	if len(p.race.Accesses) == mostAccesses {
		return
	}
	addr, _ := strconv.ParseUint(m[2], 0, 64)
	p.race.Accesses = append(p.race.Accesses, evidence.RaceAccess{Write: strings.EqualFold(m[1], "write"), Addr: evidence.Addr(addr), Goroutine: number(m[3])})
	p.stack = &p.race.Accesses[len(p.race.Accesses)-1].Stack
}

func (p *parser) created(m []string) {
	p.stack = nil
	if len(p.race.Created) == mostCreated {
		return
	}
	p.race.Created = append(p.race.Created, evidence.RaceGoroutine{Goroutine: number(m[1]), Finished: m[2] == "finished"})
	p.stack = &p.race.Created[len(p.race.Created)-1].Stack
}

// number is a decimal number; 0 for the main goroutine, which has none.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// end completes a report.
func (p *parser) end() {
	r := p.race
	p.race, p.stack, p.place = nil, nil, false
	switch {
	case r == nil:
	case len(r.Accesses) < 2:
		p.out.Cut++
	default:
		p.add(r)
	}
}

func (p *parser) add(r *evidence.DataRace) {
	for i := range p.out.Races {
		if same(&p.out.Races[i], r) {
			p.out.Races[i].Times++
			return
		}
	}
	if len(p.out.Races) == mostRaces {
		p.out.More++
		return
	}
	p.out.Races = append(p.out.Races, *r)
}

// same reports whether two races are at the same places, by whichever goroutines.
func same(a, b *evidence.DataRace) bool {
	if len(a.Accesses) != len(b.Accesses) {
		return false
	}
	for i := range a.Accesses {
		if a.Accesses[i].Write != b.Accesses[i].Write || !reflect.DeepEqual(a.Accesses[i].Stack, b.Accesses[i].Stack) {
			return false
		}
	}
	return true
}
