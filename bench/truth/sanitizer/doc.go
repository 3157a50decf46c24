// Package sanitizer reads the first violation from a report of AddressSanitizer,
// MemorySanitizer, UndefinedBehaviorSanitizer or ThreadSanitizer.
package sanitizer
