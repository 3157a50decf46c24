package program

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// words gives each part a word that its names end with.
type words struct {
	list []string
	used int
}

var vocabulary = strings.Fields(`harbour barn meadow anchor lantern orchard quarry saddle thimble pepper
	copper walnut island ledger marble needle otter pigeon ribbon spindle turnip valley willow zephyr
	basket candle drawer engine fiddle garnet hammer jacket kettle locker mirror napkin pocket rocket
	shovel tunnel urchin violet wagon yonder acorn beacon cellar dagger ember falcon goblet hollow`)

func newWords(random *rand.Rand) *words {
	list := slices.Clone(vocabulary)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return &words{list: list}
}

// next repeats no word unless all are used.
func (w *words) next() string {
	word := w.list[w.used%len(w.list)]
	w.used++
	if w.used > len(w.list) {
		word += "s"
	}
	return word
}

var variable = regexp.MustCompile(`\$[A-Z]+`)

// substitute replaces $NAME, and $$ by the part's word.
func substitute(line string, values map[string]string, word string) string {
	line = variable.ReplaceAllStringFunc(line, func(name string) string {
		if v, ok := values[name[1:]]; ok {
			return v
		}
		return name
	})
	if word != "" {
		line = strings.ReplaceAll(line, "$$", "_"+word)
	}
	return line
}

var (
	allocCall = regexp.MustCompile(`ALLOC\{([^|}]*)\|([^}]*)\}`)
	freeCall  = regexp.MustCompile(`FREE\{([^}]*)\}`)
)

// heapCalls writes allocations as C does, or as C++.
func heapCalls(line string, cxxNew bool) string {
	if cxxNew {
		return freeCall.ReplaceAllString(allocCall.ReplaceAllString(line, `new $1[$2]`), `delete[] $1`)
	}
	return freeCall.ReplaceAllString(allocCall.ReplaceAllString(line, `($1 *)malloc(($2) * sizeof($1))`), `free($1)`)
}

var (
	alternatives = regexp.MustCompile(`@\{(.*?)@\|(.*?)@\}`)
	mark         = regexp.MustCompile(`\s*//@(root|seen)$`)
)

// render is the text with the bug, or without it.
func render(lines []string, fixed bool) string {
	with := "$1"
	if fixed {
		with = "$2"
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(alternatives.ReplaceAllString(mark.ReplaceAllString(line, ""), with))
		b.WriteByte('\n')
	}
	return b.String()
}

// marked are the numbers of the lines with a mark.
func marked(lines []string, name string) (list []int) {
	for i, line := range lines {
		if m := mark.FindStringSubmatch(line); m != nil && m[1] == name {
			list = append(list, i+1)
		}
	}
	return list
}
