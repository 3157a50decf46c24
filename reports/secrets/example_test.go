package secrets_test

import (
	"fmt"

	"diagnose/reports/secrets"
)

// A value that one text names as a password is hidden in every other text.
func ExampleFinder() {
	var f secrets.Finder
	texts := []string{`{"user": "eve", "password": "tulips99"}`, `login of eve with tulips99 failed`}
	for _, text := range texts {
		f.Text(text)
	}
	for _, text := range texts {
		fmt.Println(secrets.Replace(text, f.Text(text), "[hidden]"))
	}
	// Output:
	// {"user": "eve", "password": "[hidden]"}
	// login of eve with [hidden] failed
}
