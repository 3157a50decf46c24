package program

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Language is what a program is written in.
type Language string

// The languages.
const (
	C   Language = "C"
	CXX Language = "C++"
)

// Program is a small program with one bug.
type Program struct {
	Seed uint64
	// Kind is what the bug is, Ending how the program fails by it.
	Kind, Ending string
	// Language, Compiler and Level are how it is compiled; Flags are added to the compiler's.
	Language        Language
	Compiler, Level string
	Flags           []string
	// Source is the text with the bug, Twin the same without it. Their lines have the same numbers.
	Source, Twin string
	// Root are the lines of the bug, Seen those where a sanitizer may see it first.
	Root, Seen []int
	// Variable is the name of the member that the accesses of a bug of threads are to; empty: the lines alone tell. A compiler may give
	// an access the line of its neighbour.
	Variable string
	// Sanitizer is the one that sees the bug; empty: none does.
	Sanitizer Sanitizer
	// Failing are the arguments with which it fails, Passing those with which it does not; nil:
	// it fails with all.
	Failing, Passing []string
}

// Sanitizer is a tool that confirms a bug.
type Sanitizer string

// The sanitizers. Address includes the checks of bounds.
const (
	Address Sanitizer = "address"
	Memory  Sanitizer = "memory"
	Thread  Sanitizer = "thread"
)

// Concurrent reports whether the bug is one of threads or signals.
func (p *Program) Concurrent() bool { return p.Passing != nil }

// File is the name of the source.
func (p *Program) File() string {
	if p.Language == CXX {
		return "small.cc"
	}
	return "small.c"
}

// HoldOut reports whether only totals may be told of a seed's program: of a third of them.
func HoldOut(seed uint64) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "small hold-out %d", seed))
	return binary.LittleEndian.Uint64(sum[:])%3 == 0
}

// Generator makes programs.
type Generator struct {
	parts []*part
	kinds []*part // those of role bug
}

// New reads the parts.
func New() (*Generator, error) {
	parts, err := readParts()
	if err != nil {
		return nil, err
	}
	g := &Generator{parts: parts}
	for _, p := range parts {
		if p.role() == roleBug {
			g.kinds = append(g.kinds, p)
		}
	}
	return g, nil
}

// threadsEvery is how many seeds there are for one whose bug is of threads or signals.
const threadsEvery = 4

// bugOf ranks the bugs by the seed, so that one more of them changes few programs.
func (g *Generator) bugOf(seed uint64) *part {
	wanted := "memory"
	if seed%threadsEvery == threadsEvery-1 {
		wanted = "threads"
	}
	list := slices.DeleteFunc(slices.Clone(g.kinds), func(p *part) bool { return p.header["group"] != wanted })
	rank := func(p *part) uint64 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", p.name, seed))
		return binary.LittleEndian.Uint64(sum[:])
	}
	return slices.MinFunc(list, func(a, b *part) int { return cmp.Compare(rank(a), rank(b)) })
}

// levels are those of optimisation.
var levels = []string{"O0", "O1", "O2", "O3"}

// Make makes the program of a seed.
func (g *Generator) Make(seed uint64) (*Program, error) {
	random := rand.New(rand.NewPCG(seed, 0x736d616c6c))
	bug := g.bugOf(seed)
	p := &Program{Seed: seed, Language: C, Compiler: "gcc", Level: levels[random.IntN(len(levels))]}
	if random.IntN(3) == 0 {
		p.Language = CXX
	}
	if l := bug.header["language"]; l != "" {
		p.Language = Language(l)
	}
	if l := strings.Fields(bug.header["levels"]); len(l) > 0 {
		p.Level = l[random.IntN(len(l))]
	}
	if random.IntN(3) == 0 {
		p.Compiler = "clang"
	}
	c := &composer{generator: g, program: p, env: environment{
		random: random, words: newWords(random), cxxNew: p.Language == CXX && random.IntN(2) == 0, values: map[string]string{},
	}}
	return p, c.compose(bug)
}

// composer puts the parts of a program together.
type composer struct {
	generator *Generator
	program   *Program
	env       environment
	instances []*instance
	value     string // number, pointer or nothing: what the last part gives
}

func (c *composer) compose(bug *part) error {
	r := c.env.random
	for range r.IntN(3) {
		if err := c.addOne(roleWork, "nothing"); err != nil {
			return err
		}
	}
	first, err := c.add(bug)
	if err != nil {
		return err
	}
	for range r.IntN(5) {
		if r.IntN(3) == 0 {
			err = c.addOne(roleWork, "nothing")
		} else if c.value != "nothing" {
			err = c.addOne(roleCarrier, c.value)
		}
		if err != nil {
			return err
		}
	}
	end := "itself"
	if first.header["gives"] != "nothing" {
		if err := c.addOne(roleEnd, c.value); err != nil {
			return err
		}
		end = c.instances[len(c.instances)-1].header["kind"]
	}
	p := c.program
	p.Kind, p.Ending, p.Sanitizer = first.header["kind"], end, Sanitizer(first.header["sanitizer"])
	p.Flags, p.Variable = strings.Fields(first.header["flags"]), first.header["variable"]
	p.Failing, p.Passing = strings.Fields(first.header["fail"]), strings.Fields(first.header["pass"])
	if len(p.Passing) == 0 {
		p.Passing = nil
	}
	lines := c.lines()
	p.Source, p.Twin = render(lines, false), render(lines, true)
	p.Root, p.Seen = marked(lines, "root"), marked(lines, "seen")
	return nil
}

// addOne adds one of the parts of a role that take a value.
func (c *composer) addOne(r role, value string) error {
	var list []*part
	for _, p := range c.generator.parts {
		if p.fits(r, c.program.Language, value) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("program: no %s takes a %s", r, value)
	}
	_, err := c.add(list[c.env.random.IntN(len(list))])
	return err
}

// types are those of the values.
var types = map[string]string{"number": "int", "pointer": "struct item *"}

func (c *composer) add(p *part) (*instance, error) {
	gives := p.header["gives"]
	if gives == "" || gives == "same" {
		gives = c.value
	}
	c.env.values["T"] = types[gives]
	if p.role() == roleEnd {
		c.env.values["T"] = types[c.value]
	}
	i, err := p.instantiate(&c.env)
	if err != nil {
		return nil, err
	}
	c.instances = append(c.instances, i)
	if p.role() != roleWork {
		c.value = gives
	}
	if out := i.header["out"]; out != "" {
		c.env.values["IN"] = out
	}
	return i, nil
}

// lines are those of the program.
func (c *composer) lines() []string {
	r := c.env.random
	lines := []string{"#include <assert.h>", "#include <pthread.h>", "#include <signal.h>", "#include <stdint.h>", "#include <stdio.h>",
		"#include <stdlib.h>", "#include <string.h>", "#include <time.h>", "#include <unistd.h>"}
	for _, i := range c.instances {
		for name := range strings.FieldsSeq(i.header["includes"]) {
			if line := "#include <" + name + ">"; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	lines = append(lines, "")
	lines = append(lines, item(r)...)
	lines = append(lines, "static int first_delay = 0, second_delay = 0;", "",
		"static void nap(int milliseconds)", "{", "\tstruct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000L };", "\tnanosleep(&t, NULL);", "}", "")
	for _, s := range sections[:3] {
		for _, i := range c.instances {
			lines = append(lines, i.sections[s]...)
		}
	}
	return append(lines, c.mainLines()...)
}

// item is the struct that pointers point to, with its members in some order.
func item(r *rand.Rand) []string {
	members := []string{"\tint weight;", "\tint key;", fmt.Sprintf("\tchar name[%d];", 8+4*r.IntN(4)), "\tstruct item *next;", "\tint (*cost)(const struct item *);"}
	for range r.IntN(3) {
		members = append(members, fmt.Sprintf("\tlong spare%d;", len(members)))
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	lines := append([]string{"struct item {"}, members...)
	return append(lines, "};", "",
		"static int cost_of(const struct item *i)", "{", "\treturn i->weight + 1;", "}", "",
		"static struct item *new_item(int key)", "{", "\tstruct item *i = (struct item *)calloc(1, sizeof(*i));",
		"\ti->key = key;", "\ti->weight = key % 50;", "\ti->cost = cost_of;", "\tsnprintf(i->name, sizeof(i->name), \"i%d\", key);", "\treturn i;", "}", "")
}

// mainLines are the function that the parts' statements are in, and main, which calls it directly or in a thread.
func (c *composer) mainLines() []string {
	lines := []string{"", "static int run(void)", "{"}
	for _, i := range c.instances {
		lines = append(lines, i.sections["main"]...)
	}
	for _, i := range slices.Backward(c.instances) {
		lines = append(lines, i.sections["clean"]...)
	}
	lines = append(lines, "\treturn 0;", "}", "")
	inThread := c.env.random.IntN(4) == 0 && !c.program.Concurrent()
	if inThread {
		lines = append(lines, "static void *run_in_thread(void *status)", "{", "\t*(int *)status = run();", "\treturn NULL;", "}", "")
	}
	lines = append(lines, "int main(int argc, char **argv)", "{", "\tint status = 0;", "",
		"\tif (argc > 2) {", "\t\tfirst_delay = atoi(argv[1]);", "\t\tsecond_delay = atoi(argv[2]);", "\t}")
	if inThread {
		lines = append(lines, "\tpthread_t thread;", "\tif (pthread_create(&thread, NULL, run_in_thread, &status))", "\t\treturn 9;", "\tpthread_join(thread, NULL);")
	} else {
		lines = append(lines, "\tstatus = run();")
	}
	return append(lines, "\treturn status;", "}")
}
