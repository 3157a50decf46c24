package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diagnose/reports/tracker"
)

// choicesAnnotation lists the words that a flag takes.
const choicesAnnotation = "diagnose-choices"

// choices restricts a flag to a list of words, and offers them to the shells.
func choices(c *cobra.Command, flag string, words ...string) {
	complete(c, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	must(c.Flags().SetAnnotation(flag, choicesAnnotation, words))
}

// prepare is run before every command.
func prepare(c *cobra.Command, _ []string) error {
	hideToken(c)
	return checkChoices(c)
}

// hideToken keeps a tracker's token from programs that are recorded: a recording contains the
// environment. nightly removes the token itself.
func hideToken(c *cobra.Command) {
	if c.Name() != nightlyName {
		os.Unsetenv(tracker.TokenVariable)
	}
}

func checkChoices(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		words := f.Annotations[choicesAnnotation]
		if err != nil || words == nil || slices.Contains(words, f.Value.String()) {
			return
		}
		err = usagef("--%s takes %s, not %q%s (see '%s --help')", f.Name, oneOf(words), f.Value, didYouMean(f.Value.String(), words, ""), c.CommandPath())
	})
	return err
}

// oneOf lists words as in "text, json or html".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// didYouMean returns a question with the words that are similar to the typed one, with a prefix
// before each; empty if there are none.
func didYouMean(typed string, words []string, prefix string) string {
	like := []string{typed}
	if !slices.Contains(words, typed) {
		like = similar(typed, words)
	}
	if len(like) == 0 {
		return ""
	}
	for i := range like {
		like[i] = prefix + like[i]
	}
	return ", did you mean " + oneOf(like) + "?"
}

// similar returns the words that are like typed, in any case: one of them is the begin of the
// other, or few letters differ.
func similar(typed string, words []string) (like []string) {
	const shortest = 3 // of a common begin
	for _, w := range words {
		a, b := strings.ToLower(typed), strings.ToLower(w)
		begins := min(len(a), len(b)) >= shortest && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
		if begins || edits(a, b) <= mostEdits(a, b) {
			like = append(like, w)
		}
	}
	return like
}

// mostEdits is how far two words that are alike may be apart: a third of the shorter one's
// letters. Of two and three letters one may be missing.
func mostEdits(a, b string) int {
	if len(a) != len(b) && max(len(a), len(b)) == 3 {
		return 1
	}
	return min(len(a), len(b)) / 3
}

// edits counts the letters that are added, missing, different, or exchanged with their neighbour
// (the optimal string alignment distance).
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[0][j] = j
				continue
			}
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// knownCommand refuses the arguments that remain when no command has the name.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := likeCommand(c, args[0])
	return usagef("unknown command %q%s (see '%s --help')", args[0], hint, c.CommandPath())
}

// likeCommand suggests a command for a name that c has none of: a flag of the name, a command of the
// name elsewhere, or one of a similar name. If there is none it lists the commands of a command
// that has few.
func likeCommand(c *cobra.Command, typed string) string {
	if f := c.Flags().Lookup(typed); f != nil && !f.Hidden {
		return ", did you mean --" + typed + "?"
	}
	if paths := commandsNamed(c.Root(), typed); len(paths) > 0 {
		return ", did you mean " + oneOf(paths) + "?"
	}
	const few = 5
	names := commandNames(c)
	text := didYouMean(typed, names, "")
	if text == "" && c.HasParent() && len(names) > 0 && len(names) <= few {
		text = ", " + c.Name() + " takes " + oneOf(names)
	}
	return text
}

func commandNames(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// commandsNamed are the commands of a name, as they are typed after the name of the tool.
func commandsNamed(c *cobra.Command, name string) (paths []string) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if sub.Name() == name {
			paths = append(paths, strings.TrimPrefix(sub.CommandPath(), sub.Root().Name()+" "))
		}
		paths = append(paths, commandsNamed(sub, name)...)
	}
	return paths
}

// refuseHelp makes --help after an unknown command an error, which is at the returned address
// after the execution: functions that print help return none.
func refuseHelp(root *cobra.Command) *error {
	misnamed := new(error)
	usual := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.HasSubCommands() {
			if *misnamed = knownCommand(c, c.Flags().Args()); *misnamed != nil {
				return
			}
		}
		usual(c, args)
	})
	return misnamed
}

// flagError returns an error that says what a flag takes, and which flag was probably meant.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unknown):
		return usagef("%w%s (see '%s --help')", err, likeFlag(c, unknown), c.CommandPath())
	case !errors.As(err, &invalid):
		return usagef("%w (see '%s --help')", err, c.CommandPath())
	}
	takes := "a whole number"
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		takes = "true or false"
	case "duration":
		takes = "a time, as in 90s or 5m"
	}
	return usagef("--%s takes %s, not %q (see '%s --help')", invalid.GetFlag().Name, takes, invalid.GetValue(), c.CommandPath())
}

// likeFlag suggests a flag that is similar to an unknown one: one with a dash too few, a misspelt
// one, or a flag of a command whose name was left out.
func likeFlag(c *cobra.Command, unknown *pflag.NotExistError) string {
	typed := unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		typed, _, _ = strings.Cut(group, "=")
	}
	if len(typed) < 2 {
		return "" // nothing is like one letter
	}
	if text := didYouMean(typed, flagNames(c), "--"); text != "" {
		return text
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && slices.Contains(flagNames(sub), typed) {
			return fmt.Sprintf(", did you mean '%s --%s'?", sub.CommandPath(), typed)
		}
	}
	return ""
}

func flagNames(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
