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

// similar returns the words that begin with typed, or that differ from it by one letter, or by two
// if the word is long. A letter may be added, missing or different.
func similar(typed string, words []string) []string {
	const short = 3
	among := &cobra.Command{}
	for _, w := range words {
		among.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}})
	}
	for among.SuggestionsMinimumDistance = 1; among.SuggestionsMinimumDistance <= 2; among.SuggestionsMinimumDistance++ {
		if like := among.SuggestionsFor(typed); len(like) > 0 || len(typed) <= short {
			return like
		}
	}
	return nil
}

// knownCommand refuses the arguments that remain when no command has the name.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("unknown command %q%s (see '%s --help')", args[0], didYouMean(args[0], names, ""), c.CommandPath())
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
