package tracker

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"diagnose/internal/privatefile"
)

// The environment variables for the token, for a file that has it, and for its account, which
// Jira's cloud asks for.
const (
	TokenVariable     = "DIAGNOSE_TRACKER_TOKEN"
	TokenFileVariable = "DIAGNOSE_TRACKER_TOKEN_FILE"
	UserVariable      = "DIAGNOSE_TRACKER_USER"
)

// Secret is a token. It is shown nowhere.
type Secret struct{ text string }

func (Secret) String() string   { return "[token]" }
func (Secret) GoString() string { return "[token]" }

// MarshalText keeps the token out of documents.
func (Secret) MarshalText() ([]byte, error) { return []byte("[token]"), nil }

// Empty reports whether there is no token.
func (s Secret) Empty() bool { return s.text == "" }

// Token reads a token from a file, if one is named, or else from the environment. It removes the
// token from the environment, so that programs that are started later do not inherit it. Without a
// token the result is empty. A file must be a regular one that only its owner and group can read,
// owned by this user or by root.
func Token(file string) (Secret, error) {
	text := os.Getenv(TokenVariable)
	os.Unsetenv(TokenVariable)
	if file == "" && text == "" {
		file = os.Getenv(TokenFileVariable)
	}
	if file == "" {
		s, err := secret(text)
		if err != nil {
			return Secret{}, fmt.Errorf("tracker: %s: %w", TokenVariable, err)
		}
		return s, nil
	}
	s, err := tokenFile(file)
	if err != nil {
		return Secret{}, fmt.Errorf("tracker: the file of the token: %w", err)
	}
	return s, nil
}

const mostToken = 4096

func tokenFile(name string) (Secret, error) {
	text, err := privatefile.ReadSecret(name, mostToken+2)
	if err != nil {
		return Secret{}, err
	}
	s, err := secret(string(text))
	if err == nil && s.Empty() {
		err = errors.New("it is empty")
	}
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// secret accepts a text that fits into a header. Its errors do not show the text.
func secret(text string) (Secret, error) {
	text = strings.TrimSpace(text)
	if len(text) > mostToken {
		return Secret{}, fmt.Errorf("it has more than %d bytes", mostToken)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return Secret{}, errors.New("it has spaces, line feeds or other characters that no token has")
		}
	}
	return Secret{text}, nil
}
