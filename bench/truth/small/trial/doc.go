// Package trial has a small program fail under a recording, confirms by a sanitizer that its bug
// is the intended one, and judges the diagnosis.
package trial
