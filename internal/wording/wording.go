// Package wording writes counts, sizes, signals, names and bytes in the words that all
// reports and errors have.
package wording

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Number is a count.
type Number interface{ ~int | ~uint32 | ~uint64 }

// Count is a number with its noun: "1 thread", "3 threads", "2 processes".
func Count[N Number](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, Plural(noun))
}

// Plural is the plural of a regular English noun.
func Plural(noun string) string {
	for _, end := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(noun, end) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	return noun + "s"
}

// Times is how often something happened: "once", "3 times".
func Times[N Number](n N) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Ordinal is a number's place in an order: "1st", "12th", "23rd".
func Ordinal[N Number](n N) string {
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprint(n) + end
}

// Size is a number of bytes with about three digits: "24 B", "1.5 KiB". Where all digits matter,
// Count(n, "byte") has them.
func Size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit+1 < len(units) {
		value /= 1024
		unit++
	}
	if unit == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// Signal is the name of a signal (signal(7)), "SIGSEGV"; "signal 40" for one
// that has none, as a real-time signal.
func Signal(number int) string {
	if name := unix.SignalName(unix.Signal(number)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", number)
}

// Printable shows bytes as text, with a dot for each that is not printable
// ASCII.
func Printable(data []byte) string {
	text := make([]byte, len(data))
	for i, c := range data {
		if text[i] = c; c < ' ' || c > '~' {
			text[i] = '.'
		}
	}
	return string(text)
}
