// Package secrets finds passwords, tokens and keys in what a program had: in its texts, in
// lines of its source, in its memory.
//
// A secret is found by its form (forms.go; most forms are rules of gitleaks, see
// gitleaks_rules.go), by the name that it is given to (names.go), or because the same
// document shows it as one elsewhere (known.go). Rules see a text as the program has it:
// strings that a report quotes are unescaped first, as often as they were quoted
// (view.go), and findings are places of the text as it was given.
//
// What is read was made by programs that may be hostile. The work on a text is linear in
// its length, and the work of regular expressions is bounded for each document: where the
// bound is reached, what surrounds a rule's keyword is taken for a secret.
package secrets
