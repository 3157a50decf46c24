// Package mutant makes a program with one bug from a seed, decides whether it is of use, and
// says what the right answers of a diagnosis are.
package mutant
