package main

import (
	"regexp"
	"strings"
)

// rule is a phrase that readers stumble over, and what to write instead.
type rule struct {
	pattern string // a regular expression of whole words; a space stands for any white space
	plain   string
	example string // a text that the rule finds
	not     string // a text that the rule must not find, if one is easily confused
}

// rules is the dialect that this code once had. A phrase is here if good English of the
// field hardly ever has it, so that a finding is nearly always worth a rewrite.
var rules = []rule{
	{pattern: `behind`, plain: "after (of time or order), past (of an address), at offset N from",
		example: "8 bytes behind null"},
	{pattern: `(lies|lay|lying) (in|at|on|before|between|above|below|within|inside|outside|there|right|too|where|apart)`, plain: "is, is stored",
		example: "where the word lies in memory"},
	{pattern: `where (it|they|the \w+|this|that) (lies?|stands?|stood)`, plain: "where it is, its address",
		example: "where it stands"},
	{pattern: `(stands|stood|standing) (in|at|on|before|between|above|below|there|right|where|apart|beside|still)`, plain: "is, is stored, stops",
		example: "the value that stood there"},
	{pattern: `(goes|go|going|went|gone) on`, plain: "continues, next:",
		example: "the thread goes on", not: "the go statement"},
	{pattern: `(comes|come|came|coming) to (its|the|an?|that|it|where|this|be|rest)`, plain: "reaches, ends, becomes",
		example: "the run comes to its end", not: "when it comes to speed"},
	{pattern: `nobody`, plain: "no thread, no code, or the passive: is not written",
		example: "nobody wrote it"},
	{pattern: `somebody`, plain: "another thread, a caller, or the passive",
		example: "somebody waited for it"},
	{pattern: `who (holds?|held|waits?|waited|wrote|writes?|takes?|took|has|had|runs?|ran|stored|stores|calls|called|owns|owned|reads?|frees|is there|passes)`, plain: "which thread, the thread that",
		example: "who holds the lock", not: "for people who debug"},
	{pattern: `(?-i:what) (is|was|has|had|it has|it had)`, plain: "name the thing: the registers of, code that has, the values that",
		example: "what has no handler is blocked", not: "what happened"},
	{pattern: `(is|are|was|were) had`, plain: "there is, holds",
		example: "what is had of it"},
	{pattern: `recorded (way|course)`, plain: "the recording; diverges from the recording, as recorded",
		example: "it leaves the recorded way"},
	{pattern: `on (its|their|the) way (to|through|there|out)`, plain: "before it reaches, while",
		example: "on its way to the count"},
	{pattern: `different ways through`, plain: "different paths through",
		example: "on different ways through the function"},
	{pattern: `turned? round`, plain: "reversed, the inverse of",
		example: "it is Origin turned round"},
	{pattern: `anew`, plain: "again",
		example: "it is read anew"},
	{pattern: `(lets?|letting) (it|them|\w+ )?go`, plain: "releases, resumes, detaches from",
		example: "stops it, reads it, lets it go"},
	{pattern: `beside (it|them|the|its|other|that|others|each|this|which|whom)`, plain: "next to, while ... runs, in addition to, compared with",
		example: "a check beside other threads"},
	{pattern: `till (the|it|its|then|they|all|a)`, plain: "until",
		example: "it waits till the end"},
	{pattern: `by turns`, plain: "in turn, alternately",
		example: "the threads run by turns"},
	{pattern: `dearer?`, plain: "expensive",
		example: "the dearer one"},
	{pattern: `none of its own`, plain: "no ... of its own",
		example: "a thread that has none of its own"},
	{pattern: `gets? by without`, plain: "does not need",
		example: "it gets by without a lock"},
	{pattern: `so often as`, plain: "as often as",
		example: "so often as needed"},
	{pattern: `(the )?other's (one|own)`, plain: "name the thing again",
		example: "the one that is the other's own"},
	{pattern: `makes? away with`, plain: "removes",
		example: "it makes away with the file"},
	{pattern: `is said (of|in|there|what|which|whether)`, plain: "the report says",
		example: "of threads that wait it is said what for"},
	{pattern: `(it|that|what) is not (there|here) yet`, plain: "does not exist yet, is not loaded yet",
		example: "a part that is not there yet"},
}

// compiled has the expressions of the rules, in their order.
var compiled = compile()

func compile() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, r := range rules {
		all = append(all, regexp.MustCompile(`(?i)\b(?:`+strings.ReplaceAll(r.pattern, " ", `\s+`)+`)\b`))
	}
	return all
}

// finding is a banned phrase at its place.
type finding struct {
	file   string
	line   int
	phrase string
	plain  string
}

// check returns the banned phrases of a text, in the order of the rules.
func check(s span) []finding {
	var found []finding
	for i, pattern := range compiled {
		for _, at := range pattern.FindAllStringIndex(s.text, -1) {
			found = append(found, finding{
				file:   s.file,
				line:   s.line + strings.Count(s.text[:at[0]], "\n"),
				phrase: strings.Join(strings.Fields(s.text[at[0]:at[1]]), " "),
				plain:  rules[i].plain,
			})
		}
	}
	return found
}
