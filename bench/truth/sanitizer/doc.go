// Package sanitizer reads the first violation from a report of AddressSanitizer,
// UndefinedBehaviorSanitizer or ThreadSanitizer.
package sanitizer
