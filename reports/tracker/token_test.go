package tracker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/reports/tracker/trackertest"
)

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string, mode os.FileMode) {
		os.Remove(file)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(trackertest.Token+"\n", 0o600)
	t.Setenv(TokenVariable, "other")
	if s, err := Token(file); err != nil || s.text != trackertest.Token {
		t.Errorf("%v", err)
	}
	if _, set := os.LookupEnv(TokenVariable); set {
		t.Error("the token is still in the environment")
	}
	os.Setenv(TokenVariable, trackertest.Token)
	if s, err := Token(""); err != nil || s.text != trackertest.Token || strings.Contains(fmt.Sprintf("%v %+v %#v %s", s, s, s, s), trackertest.Token) {
		t.Errorf("%v", err)
	}
	t.Setenv(TokenFileVariable, file)
	if s, err := Token(""); err != nil || s.text != trackertest.Token {
		t.Errorf("%v", err)
	}
	for text, mode := range map[string]os.FileMode{trackertest.Token: 0o644, trackertest.Token + "\nmore": 0o600, "": 0o600, trackertest.Token + trackertest.Token: 0o620, strings.Repeat("x", 9999): 0o600} {
		write(text, mode)
		if s, err := Token(file); err == nil || !s.Empty() || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%v %.9q is taken, or in %v", mode, text, err)
		}
	}
	if _, err := Token(t.TempDir()); err == nil {
		t.Error("a directory is taken")
	}
	t.Setenv(TokenFileVariable, "")
	if s, err := Token(""); err != nil || !s.Empty() {
		t.Errorf("%v", err)
	}
}
